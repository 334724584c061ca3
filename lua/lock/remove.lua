-- Deletes a value without its lock, if it is the one that an earlier call has seen: a copy of the command that comes late
-- must not delete what was stored since.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value
-- KEYS[8]     the same, in a cluster, see lib/store.lua
-- ARGV[1]     what that call returned; empty: only look; *: whatever value there is
--
-- Returns
--   ''         there is no value, or it is deleted
--   otherwise  by what this value is known: its digest, and the counter, which has changed when another holder stores the
--              same again

local value = redis.call('GET', KEYS[VALUE])
if not value then
  return ''
end
if ARGV[1] ~= '*' then
  local counter = redis.pcall('GET', KEYS[COUNTER])
  -- What somebody else has put there is a table: an error.
  local seen = redis.sha1hex(value) .. ' ' .. (type(counter) == 'string' and counter or '')
  if seen ~= ARGV[1] then
    return seen
  end
end
redis.call('DEL', KEYS[VALUE])
redis.pcall(KEYS[CHANNEL] and 'SPUBLISH' or 'PUBLISH', KEYS[VALUE], '')
return ''
