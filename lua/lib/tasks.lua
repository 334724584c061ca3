-- The tasks of a delay queue: what is written down of one, and what becomes of it. `now` is the server's time in
-- microseconds. README.md describes the keys.

-- For how long its id is known when it is done; how long it waits after its first try, and at most; by which call it was
-- inserted; how often it was taken; whether its last worker vanished; how often it is tried at most; when it is due.
local function task_of(text)
  local task, length, at = {}, nil, nil
  task.remember, task.base, task.cap, task.nonce, task.attempt, task.abandoned, task.tries, task.due, length, at =
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
  local head = string.format('%d %d %d %s %d %d %d %d %d ', task.remember, task.base, task.cap, task.nonce, task.attempt,
    task.abandoned, task.tries, task.due, #task.error)
  return head .. task.error .. task.payload
end

local function write_task(id, task)
  redis.call('HSET', KEYS[TASKS], id, text_of(task))
end

-- As `src/base/task.rs` reads it.
local function record_of(id, shown, state, now)
  return string.format('%s %d %d ', state, now, #id) .. id .. shown
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

-- Ends the lease of a worker.
local function free(owner)
  redis.call('ZREM', KEYS[ENDS], owner)
  redis.call('HDEL', KEYS[WORKERS], owner)
end

-- Ends the leases of workers that vanished: their tasks are ready at once.
local function end_leases(now)
  local over = redis.call('ZRANGEBYSCORE', KEYS[ENDS], '-inf', string.format('%d', now), 'LIMIT', '0', MOST_ENDED)
  for _, owner in ipairs(over) do
    local _, _, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
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
