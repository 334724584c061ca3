-- Changes a task that isn't running.
--
-- KEYS[1..7]  see README.md
-- ARGV[1]     reset, remove, or kick: a buried task is ready, and begins anew
-- ARGV[2]     its id
-- ARGV[3]     to reset it: +<microseconds> after now, or @<microseconds> since 1970
--
-- Returns 1 if the task was there and not running, and buried if it is to be kicked; else 0, and nothing was changed
-- use: time, tasks, ends, workers

local verb, id, now = ARGV[1], ARGV[2], server_time()
local at = redis.call('ZSCORE', KEYS[DUE], id)
local is_buried = at and tonumber(at) >= BURIED_FROM
if not at or (verb == 'kick' and not is_buried) then
  return 0
end
if verb == 'remove' then
  redis.call('HDEL', KEYS[TASKS], id)
  redis.call('ZREM', KEYS[DUE], id)
  end_if_empty()
else
  local due, task = ARGV[3] or '+0', read_task(id)
  if not task then
    return 0
  end
  due = math.min(string.sub(due, 2) + (string.sub(due, 1, 1) == '+' and now or 0), BURIED_FROM - 1)
  if is_buried then
    task.attempt = 0
  end
  wait_until(id, task, due)
end
call_waiters(now)
return 1
