-- Turns an exclusive lease into one that reads, without a moment in which the lock is free, and lets in the waiters
-- that want to read.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value; without it the value stays as it is
-- KEYS[8]     the same, in a cluster, see lib/store.lua
-- ARGV[1]     the owner
-- ARGV[2]     the last token that was used, plus 1
-- ARGV[3]     the ttl in milliseconds
-- ARGV[4]     the new value, a string: it is written if the lock is the owner's
--
-- Returns
--   token  the owner reads; repeated by it, the same
--   0      the lock isn't the owner's, or was lost and is its own anew; nothing was changed
-- use: time, mode, name, holders, grant, hand_off, store

local owner, counter_after, ttl, value = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local lock, counter = unpack(redis.call('MGET', KEYS[LOCK], KEYS[COUNTER]))
local name = read_name(KEYS, counter, server_time())
name[STORED] = name[STORED] or 0
read_holders(name, lock)

local reads = name[HELD] == MARK_READERS and redis.call('ZSCORE', name[HOLDERS], member_of(owner, 'r'))
-- By a late copy of its request the owner has the lock anew, and others may have had it since.
local is_anew = name[HELD] == owner and name[STORED] >= counter_after
if is_anew or (name[HELD] ~= owner and not reads) then
  return 0
end
if name[HELD] == owner then
  redis.call('DEL', name[LOCK])
  name[HELD] = nil
  if name[VALUE] then
    store(value)
  end
  name[STORED] = counter_after
end
local token = (reads and grant_again or grant)(name, owner, ttl, 'r')
-- As after a release.
pcall(hand_off, name, nil, true)
return token
