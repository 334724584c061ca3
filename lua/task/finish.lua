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
-- use: time, tasks, workers

local owner, counter, how = ARGV[1], tonumber(ARGV[2]), ARGV[4] or ''
local now = server_time()
local token, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
local ends = token and tonumber(redis.call('ZSCORE', KEYS[ENDS], owner) or 0)
if not token or (counter ~= 0 and (ends <= now or token + 1 ~= counter)) then
  -- It waits, or a late copy of its question has put it into the line.
  local was_waiting = redis.call('HDEL', KEYS[WAITING], owner) == 1
  if was_waiting then
    redis.call('LREM', KEYS[LINE], 1, owner)
    call_waiters(now)
  end
  return was_waiting and counter == 0 and 1 or 2
end
free(owner)
local task, mark = read_task(id), string.sub(how, 1, 1)
local wait, why = string.match(how, '^i(%d+) (.*)$')
if not task then
  return 1
elseif counter == 0 then
  task.attempt = task.attempt - 1
  wait_until(id, task, task.due)
elseif mark == 'd' then
  delete_task(id)
  if task.remember + 0 > 0 then
    remember(id, task.remember, now)
  end
  -- Nobody has anything to do because of that.
  return 1
elseif mark == 'b' then
  bury(id, task, string.sub(how, 2), now)
elseif wait then
  retry(id, task, now + wait, why, now)
elseif mark == 'r' then
  retry(id, task, nil, string.sub(how, 2), now)
else
  retry(id, task, nil, 'its worker dropped it', now)
end
call_waiters(now)
return 1
