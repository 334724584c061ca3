-- Ends a lease, and gives the lock to the first in line. An owner that waits for it leaves the line.
--
-- KEYS[1]  the lock: a string, the owner, which expires with its lease
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held, even after a clean release
-- KEYS[3]  the line of those that wait, see line.lua
-- KEYS[4]  who waits, see line.lua
-- ARGV[1]  the owner
-- ARGV[2]  what the counter becomes: the last token that was used, plus 1; 0 when the owner doesn't know whether
--          it was granted one
--
-- Returns
--   1  released, now or by the same command before
--   0  the lock isn't the owner's; nothing was changed. But if ARGV[2] is 0 the owner has left the line, and a lock
--      that was free has gone to the first that is still in it
--
-- DEL, or leaving the line, comes before SET: a server without memory refuses SET, but not after a write that frees
-- some.

local DAY = '86400000' -- milliseconds
local owner, counter = ARGV[1], ARGV[2]
local holder = redis.call('GET', KEYS[1])
local held = holder == owner
local others = redis.call('EXISTS', KEYS[3]) == 1

if held and not others and counter ~= '0' then
  -- The counter lives for longer than the lease that it was last counted or renewed for, so it has its ttl.
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[2], counter, 'XX', 'KEEPTTL')
  return 1
end

-- include line.lua

if not held and counter ~= '0' then
  return redis.call('GET', KEYS[2]) == counter and 1 or 0
end
if not held then
  leave(owner)
  if holder then
    return 0
  end
end

local stored = tonumber(counter)
if counter == '0' then
  -- What was never counted needs no counter. An odd number whose second bit is set says that the lock was found
  -- abandoned: nobody was told, so it stays for the next holder.
  stored = tonumber(redis.call('GET', KEYS[2]) or 0)
  counter = held and stored and stored % 4 == 1 and stored + 1
  stored = counter or stored
end
if stored then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- include token.lua
  -- A line that can't be read hinders no release: those in it find that the lock is free.
  local read, next_owner = pcall(hand_on, token, now)
  if read and next_owner then
    return held and 1 or 0
  end
end
if redis.call('GET', KEYS[1]) == owner then
  redis.call('DEL', KEYS[1])
end
if counter then
  redis.call('SET', KEYS[2], counter, 'PX', DAY)
end
return held and 1 or 0
