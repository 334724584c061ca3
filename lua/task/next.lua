-- Ends a task, and takes the next one that is ready, if there is one for a worker that doesn't wait.
--
-- KEYS[1..7]  see README.md
-- ARGV[1]     the owner that has the task
-- ARGV[2]     1 above the token that it was granted
-- ARGV[4]     how the task ends: see finish.lua
-- ARGV[5]     the owner that takes the next one, which asks for the first time
-- ARGV[6]     its ttl in milliseconds
--
-- Returns
--   {1, token, task}  ended, and the other owner has the next one
--   {1}               ended
--   {2}               the owner has no task, or its lease is over; nothing was changed
-- use: time, tasks, ends, workers, takes

local now = server_time()
local ended, calls = end_work(ARGV[1], tonumber(ARGV[2]), ARGV[4], now)
local token, record
if ended == 1 then
  end_leases(now)
  local length = redis.call('LLEN', KEYS[LINE])
  if length > 0 then
    length = length - drop_overdue('', now)
    calls = true
  end
  token, record = take_task(ARGV[5], ARGV[6] * 1000, nil, length, now)
  if token then
    return {ended, token, record}
  end
  end_if_empty()
end
if calls then
  call_waiters(now)
end
return {ended}
