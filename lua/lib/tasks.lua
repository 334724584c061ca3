-- The tasks of a delay queue: what is written down of one, and what becomes of it. `now` is the server's time in
-- microseconds. README.md describes the keys.

-- How often it was taken, and is tried at most; how long it waits after its first try, and at most; for how long its id is
-- known afterwards; when it is due; whether its last worker vanished; and by which call it was inserted.
local function task_of(text)
  local task, length, at = {}, nil, nil
  task.attempt, task.tries, task.base, task.cap, task.remember, task.due, task.abandoned, task.nonce, length, at =
    string.match(text or '', TASK_HEAD)
  if not at then
    return nil
  end
  task.error = string.sub(text, at, at + length - 1)
  task.payload = string.sub(text, at + length)
  return task
end

local function read_task(id)
  return task_of(redis.call('HGET', KEYS[TASKS], id))
end

local function text_of(task)
  local head = string.format('%d %d %d %d %d %d %d %s %d ', task.attempt, task.tries, task.base, task.cap, task.remember,
    task.due, task.abandoned, task.nonce, #task.error)
  return head .. task.error .. task.payload
end

local function write_task(id, task)
  redis.call('HSET', KEYS[TASKS], id, text_of(task))
end

-- Removes a task. The last token outlasts the last task for a day; `insert` lets it stay again.
local function delete_task(id)
  redis.call('HDEL', KEYS[TASKS], id)
  if redis.call('HLEN', KEYS[TASKS]) == 1 then
    redis.call('PEXPIRE', KEYS[TASKS], DAY)
  end
end

-- As `src/base/task.rs` reads it.
local function record_of(id, task, state, now)
  return string.format('%s %d %d %d %d %d %d ', state, task.due, now, task.attempt, task.tries, #id, #task.error)
    .. id .. task.error .. task.payload
end

-- A task that nobody has is due at a time, or was buried.
local function wait_until(id, task, due)
  task.due = due
  write_task(id, task)
  redis.call('ZADD', KEYS[DUE], string.format('%d', due), id)
end

local function bury(id, task, why, now)
  task.abandoned, task.error = 0, why
  write_task(id, task)
  redis.call('ZADD', KEYS[DUE], string.format('%d', BURIED_FROM + now), id)
end

local function has_tries(task)
  return task.tries + 0 == 0 or task.attempt + 0 < task.tries + 0
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

-- Ends the lease of a worker.
local function free(owner)
  redis.call('ZREM', KEYS[ENDS], owner)
  redis.call('HDEL', KEYS[WORKERS], owner)
end

-- Ends the leases of workers that vanished: their tasks are ready at once.
local function end_leases(now)
  local over = redis.call('ZRANGEBYSCORE', KEYS[ENDS], '-inf', string.format('%d', now), 'LIMIT', '0', MOST_ENDED)
  for _, owner in ipairs(over) do
    local _, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
    free(owner)
    local task = id and read_task(id)
    if task and not has_tries(task) then
      bury(id, task, 'its worker vanished', now)
    elseif task then
      task.abandoned, task.error = 1, 'its worker vanished'
      wait_until(id, task, now)
    end
  end
end
