-- Makes the lease of a task last for another ttl.
--
-- KEYS[1..7]  see README.md
-- ARGV[1]     the owner
-- ARGV[2]     the ttl in milliseconds; 0: only look
-- ARGV[5]     the token that the owner was granted; without it, it isn't compared
--
-- Returns
--   1  renewed
--   0  the task isn't the owner's; nothing was changed
-- use: time

local owner, ttl = ARGV[1], ARGV[2]
local now = server_time()
local token = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
local ends = token and redis.call('ZSCORE', KEYS[ENDS], owner)
if not ends or tonumber(ends) <= now or (ARGV[5] and ARGV[5] ~= token) then
  return 0
end
if ttl ~= '0' then
  redis.call('ZADD', KEYS[ENDS], string.format('%d', now + ttl * 1000), owner)
end
return 1
