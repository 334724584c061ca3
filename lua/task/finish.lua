-- Ends a task, or a worker's wait.
--
-- KEYS[1..7]  see README.md
-- ARGV[1]     the owner
-- ARGV[2]     1 above the token that it was granted; 0: it doesn't know whether it was granted one, and gives back what it
--             has
-- ARGV[4]     how the task ends: `d` done; `i<microseconds> <error>` tried again in that time; `r<error>` tried again by
--             its backoff; `b<error>` buried; empty or missing: it was dropped
--
-- Returns
--   1  ended, or an owner that doesn't know what it has waits no longer
--   2  the owner has no task, or its lease is over; no task was changed
-- use: time, tasks, ends, workers

local now = server_time()
local ended, calls = end_work(ARGV[1], tonumber(ARGV[2]), ARGV[4] or '', now)
if calls then
  call_waiters(now)
elseif ended == 1 then
  end_if_empty()
end
return ended
