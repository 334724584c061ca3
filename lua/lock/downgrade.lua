-- Turns an exclusive lease into one that reads, without a moment in which the lock is free, and lets in those that
-- wait to read.
--
-- KEYS[1..6]  as in lock_release.lua
-- KEYS[7]  the value that the lock protects; without it the value stays as it is
-- ARGV[1]  the owner
-- ARGV[2]  the last token that was used, plus 1
-- ARGV[3]  the ttl in milliseconds
-- ARGV[4]  the new value, a string: it is written if the lock is the owner's
--
-- Returns
--   token  the owner reads; repeated by it, a later one
--   0      the lock isn't the owner's, or was lost and is its own anew; nothing was changed

local DAY = '86400000' -- milliseconds
local owner, counter_after, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local lock, counter = unpack(redis.call('MGET', KEYS[1], KEYS[2]))
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- include counter.lua
stored, lines = stored or 0, lines or 'qr'
-- include token.lua
-- include mode.lua
-- include held.lua
-- include grant.lua
-- include line.lua

local reads = held == READERS and redis.call('ZSCORE', KEYS[6], member_of(owner, 'r'))
-- By a copy of its request that came late the owner has the lock anew, and others may have had it since.
local anew = held == owner and stored >= counter_after
if anew or (held ~= owner and not reads) then
  return 0
end
if held == owner then
  redis.call('DEL', KEYS[1])
  held = nil
  if KEYS[7] then
    redis.call('SET', KEYS[7], ARGV[4])
  end
  stored = counter_after
end
local token = grant(owner, ttl, 'r')
-- As after a release.
pcall(hand_on, nil, true)
return token
