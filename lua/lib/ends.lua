-- How a worker's task ends.

-- Has the last token outlast the last task for a day; `insert` lets it stay again.
local function end_if_empty()
  if redis.call('HLEN', KEYS[TASKS]) == 1 then
    redis.call('PEXPIRE', KEYS[TASKS], DAY)
  end
end

-- How long a task waits that has failed so often: see `Policy::backoff` in `src/base/task.rs`.
local function backoff(task, now)
  local whole = task.base * 2 ^ math.min(math.max(task.attempt - 1, 0), 40)
  local micros = math.min(whole, task.cap + 0) * 1000
  return micros - math.floor(micros / 5120) * (now % 1024)
end

-- Has a task tried again, at a time or by its backoff; buries it after its last try.
local function retry(id, task, due, why, now)
  if not has_tries(task) then
    return bury(id, task, why, now)
  end
  task.abandoned, task.error = 0, why
  wait_until(id, task, math.min(due or now + backoff(task, now), BURIED_FROM - 1))
end

-- Remembers for so many milliseconds that a task is done.
local function remember(id, millis, now)
  redis.call('ZREMRANGEBYSCORE', KEYS[FINISHED], '-inf', string.format('%d', now))
  redis.call('ZADD', KEYS[FINISHED], string.format('%d', now + millis * 1000), id)
  if redis.call('PTTL', KEYS[FINISHED]) < millis + 0 then
    redis.call('PEXPIRE', KEYS[FINISHED], millis)
  end
end

-- Ends a worker's task in another way than done.
local function end_try(id, counter, how, now)
  local task, wait, why = read_task(id), string.match(how, '^i(%d+) (.*)$')
  local mark = string.sub(how, 1, 1)
  if not task then
    return
  elseif counter == 0 then
    task.attempt = task.attempt - 1
    wait_until(id, task, task.due)
  elseif mark == 'b' then
    bury(id, task, string.sub(how, 2), now)
  elseif wait then
    retry(id, task, now + wait, why, now)
  elseif mark == 'r' then
    retry(id, task, nil, string.sub(how, 2), now)
  else
    retry(id, task, nil, 'its worker dropped it', now)
  end
end

-- Whether the lease of a worker lasts that has this token. `counter` is 1 above it, or 0: the worker doesn't know it.
local function is_valid(owner, token, counter, now)
  if not token or counter == 0 then
    return token
  end
  return token + 1 == counter and tonumber(redis.call('ZSCORE', KEYS[ENDS], owner) or 0) > now
end

-- Ends what a worker has, or its wait. Says 1, or 2: it has no such task; and whether somebody may have something to do
-- because of that.
local function end_work(owner, counter, how, now)
  local token, known_for, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
  if not is_valid(owner, token, counter, now) then
    -- It waits, or a late copy of its question has put it into the line.
    local was_waiting = redis.call('HDEL', KEYS[WAITING], owner) == 1
    if was_waiting then
      redis.call('LREM', KEYS[LINE], 1, owner)
    end
    return was_waiting and counter == 0 and 1 or 2, was_waiting
  end
  free(owner)
  if counter == 0 or string.sub(how, 1, 1) ~= 'd' then
    end_try(id, counter, how, now)
    return 1, true
  end
  redis.call('HDEL', KEYS[TASKS], id)
  if known_for ~= '0' then
    remember(id, known_for, now)
  end
  return 1, false
end
