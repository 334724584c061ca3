-- Takes a lock, or says that it is taken, and enters its line or leaves it.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held exclusively, even after a clean release
-- KEYS[3]  the line, see line.lua
-- KEYS[4]  who waits, see line.lua
-- KEYS[5]  the line of those that wait to read, see line.lua
-- KEYS[6]  who shares the lock, see held.lua
-- KEYS[7]  the value that the lock protects, a string; without it there is none, or nobody asks
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds
-- ARGV[3]  the mode, see mode.lua; R: read, and before those that wait for the lock exclusively
-- ARGV[4]  in how many milliseconds the next heartbeat is overdue; without it the owner doesn't wait, and leaves
--          the line if it is in it
-- ARGV[5]  the owner's inbox, empty when it can't hear
--
-- Returns
--   token                 the owner has it; token % 4 is 3 when the exclusive holder before never released
--   {token, value}        the same, where there may be a value: false when there is none
--   {remaining, counter, stood, known}  taken, for so many milliseconds; -1: by somebody who set no ttl. Any token that
--                         the owner is granted after this is above the counter. Stood 1: it was in the line before.
--                         Known 0: the holder is no program of ours, and won't hand it on
--   error CONFLICT        the counter holds something else; nothing was changed
--
-- Repeated by its owner it gives the same token, or a later one to who shares, and a full ttl; or keeps its place in
-- line. All that a free lock needs is read before the first write, and both writes are SET, if it is not shared: a
-- command that is denied or refused leaves nothing behind.

local DAY = '86400000' -- milliseconds: no key here lives for longer unless it is used
local LARGEST = 2 ^ 53 - 2 ^ 12 -- the next tokens are still exact
local owner, ttl, mode, promise, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local counter = redis.pcall('GET', KEYS[2])
if type(counter) == 'table' and not string.find(counter.err, 'WRONGTYPE', 1, true) then
  return counter
end
local stored = tonumber(counter or 0)
if not (stored and stored >= 0 and stored < LARGEST and stored % 1 == 0) then
  return redis.error_reply('CONFLICT ' .. KEYS[2] .. ' holds no counter')
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local value = KEYS[7] and redis.call('GET', KEYS[7])
-- include token.lua
-- include mode.lua

local function granted(token)
  return KEYS[7] and {token, value} or token
end

local first = mode == 'R'
mode = first and 'r' or mode
local others, exclusive = redis.call('EXISTS', KEYS[3], KEYS[5]) > 0, is_exclusive(mode)
local mark = exclusive and owner or mode == 'r' and READERS or PERMITS
if not others and redis.call('SET', KEYS[1], mark, 'NX', 'PX', ttl) then
  if not exclusive then
    redis.call('DEL', KEYS[6])
    redis.call('ZADD', KEYS[6], math.floor(now / 1000) + ttl, member_of(owner, mode))
    redis.call('PEXPIRE', KEYS[6], ttl)
  end
  local token = next_token(stored, now, not exclusive)
  redis.call('SET', KEYS[2], token, 'PX', DAY)
  return granted(token)
end

-- include held.lua
-- include line.lua

if held == owner then
  redis.call('PEXPIRE', KEYS[1], ttl)
  if stored % 2 == 0 then
    stored = next_token(stored, now)
    redis.call('SET', KEYS[2], stored, 'PX', DAY)
  end
  return granted(stored)
end
if is_shared() and not exclusive and redis.call('ZSCORE', KEYS[6], member_of(owner, mode)) then
  return granted(grant(owner, ttl, mode))
end

local after_exclusive = is_abandoned(stored)
local token = others and hand_on(owner, after_exclusive)
if not token and fits(mode) and (first or not others or not redis.call('LINDEX', KEYS[3], 0)) then
  if others then
    leave(line_of(mode), owner)
  end
  token = grant(owner, ttl, mode)
end
if token then
  return granted(token)
end

local stood = false
if promise then
  -- Read first, and no key without a ttl: a command that is denied leaves nothing that stays.
  stood = redis.call('LPOS', line_of(mode), owner)
  local waiter = string.format('%.0f %s %s %s', clock + promise, ttl, mode, inbox)
  redis.call('HSET', KEYS[4], owner, waiter)
  redis.call('PEXPIRE', KEYS[4], DAY)
  if not stood then
    redis.call('RPUSH', line_of(mode), owner)
  end
  redis.call('PEXPIRE', line_of(mode), DAY)
  first_of(line_of(mode), owner)
elseif others then
  leave(line_of(mode), owner)
  hand_on(nil, after_exclusive)
end
local remaining = redis.call('PTTL', KEYS[1])
if held == PERMITS then
  -- The next that may come back.
  remaining = redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2] - clock
end
local known = is_shared() or stored % 2 == 1
return {remaining, stored, stood and 1 or 0, known and 1 or 0}
