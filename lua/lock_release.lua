-- Ends a lease.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens
-- ARGV[1]  the owner
-- ARGV[2]  what the counter becomes: the last token that was used, plus 1; 0 when the owner doesn't know whether
--          it was granted one
--
-- Returns
--   1  released, now or by the same command before
--   0  the lock isn't the owner's; nothing was changed
--
-- DEL comes first: a server without memory refuses SET, but not after a write that frees some.

local COUNTER_TTL = '86400000'

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.call('GET', KEYS[2]) == ARGV[2] and 1 or 0
end
local counter = ARGV[2]
if counter == '0' then
  -- What was never counted needs no counter. An odd number whose second bit is set says that the lock was found
  -- abandoned: nobody was told, so it stays for the next holder.
  local stored = tonumber(redis.call('GET', KEYS[2]) or 0)
  counter = stored and stored % 4 == 1 and stored + 1
end
redis.call('DEL', KEYS[1])
if counter then
  redis.call('SET', KEYS[2], counter, 'PX', COUNTER_TTL)
end
return 1
