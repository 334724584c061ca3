-- Takes an exclusive lock, or says that it is taken, and enters its line or leaves it.
--
-- KEYS[1]  the lock: a string, the owner, which expires with its lease
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held, even after a clean release
-- KEYS[3]  the line of those that wait, see line.lua
-- KEYS[4]  who waits, see line.lua
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds
-- ARGV[3]  in how many milliseconds the next heartbeat is overdue; without it the owner doesn't wait, and leaves
--          the line if it is in it
-- ARGV[4]  the owner's inbox, empty when it can't hear
--
-- Returns
--   token                 the owner has it; token % 4 is 3 when the holder before never released, else 1
--   {remaining, counter, stood}  taken, for so many milliseconds; -1: by somebody who set no ttl. Any token that the
--                         owner is granted after this is above the counter. 1: it stood in the line before; 0: it
--                         didn't
--   error CONFLICT        the counter holds something else; nothing was changed
--
-- Repeated by its owner it gives the same token and a full ttl, or keeps its place in line. All that a free lock
-- needs is read before the first write, and both writes are SET: a command that is denied or refused leaves
-- nothing behind.

local DAY = '86400000' -- milliseconds: no key here lives for longer unless it is used
local LARGEST = 2 ^ 53 - 2 ^ 12 -- the next tokens are still exact
local owner, ttl, promise, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

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
-- include token.lua

local others = redis.call('EXISTS', KEYS[3]) == 1
if not others and redis.call('SET', KEYS[1], owner, 'NX', 'PX', ttl) then
  redis.call('SET', KEYS[2], token, 'PX', DAY)
  return token
end

-- include line.lua

local holder = redis.call('GET', KEYS[1])
if not holder then
  holder = hand_on(token, now, owner)
  if not holder then
    redis.call('SET', KEYS[1], owner, 'PX', ttl)
    redis.call('SET', KEYS[2], token, 'PX', DAY)
    return token
  end
  if holder == owner then
    return token
  end
  stored = token
elseif holder == owner then
  redis.call('PEXPIRE', KEYS[1], ttl)
  if not odd then
    redis.call('SET', KEYS[2], token, 'PX', DAY)
    stored = token
  end
  return stored
end

local stood = false
if promise then
  -- Read first, and no key without a ttl: a command that is denied leaves nothing that stays.
  stood = redis.call('LPOS', KEYS[3], owner)
  local overdue = math.floor(now / 1000) + promise
  redis.call('HSET', KEYS[4], owner, string.format('%.0f %s %s', overdue, ttl, inbox))
  redis.call('PEXPIRE', KEYS[4], DAY)
  if not stood then
    redis.call('RPUSH', KEYS[3], owner)
  end
  redis.call('PEXPIRE', KEYS[3], DAY)
  first_in_line(now, owner)
elseif others then
  leave(owner)
end
return {redis.call('PTTL', KEYS[1]), stored, stood and 1 or 0}
