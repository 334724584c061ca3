-- Deletes a value without its lock, if it is the one that an earlier call has seen: a copy of the command that comes late
-- must not delete what was stored since.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value
-- ARGV[1]     what that call returned; empty: only look
--
-- Returns
--   ''         there is no value, or it is deleted
--   otherwise  by what this value is known: its digest, and the counter, which has changed when another holder stores the
--              same again

local value = redis.call('GET', KEYS[VALUE])
if not value then
  return ''
end
local seen = redis.sha1hex(value) .. ' ' .. tostring(redis.pcall('GET', KEYS[COUNTER]))
if seen ~= ARGV[1] then
  return seen
end
redis.call('DEL', KEYS[VALUE])
return ''
