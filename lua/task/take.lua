-- Takes a task, or says that there is none, and enters the line of workers or leaves it.
--
-- KEYS[1..7]  the tasks, their times, the ends of leases, the workers, the line, who waits in it, the finished ids: see
--             README.md
-- ARGV[1]     the owner: a worker
-- ARGV[2]     the ttl in milliseconds
-- ARGV[3]     t
-- ARGV[4]     heartbeat_within: in how many milliseconds the owner's next heartbeat is overdue; without it the owner doesn't
--             wait, and leaves the line if it is in it
-- ARGV[5]     the owner's inbox, empty when it can't hear
--
-- Returns
--   {token, task}  the owner has the task; token % 4 is 3 when its last worker vanished
--   {remaining, 0, was_queued, 1, place}
--                  there is none for it.
--                  remaining: in so many microseconds the leader is to ask; -1: it will be called, as all others are
--                  was_queued: 1 if the owner was in the line before
--                  place: in the line, 1 for the leader; 0 if it doesn't wait
--   error CONFLICT  the key holds something else
--
-- Repeated by its owner it gives the same task with the same token, and a full ttl; or keeps its place in the line.
-- use: time, tasks, workers

local owner, lease = ARGV[OWNER], ARGV[TTL] * 1000
local now = server_time()

end_leases(now)
local token, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
local task = id and read_task(id)
if task then
  redis.call('ZADD', KEYS[ENDS], string.format('%d', now + lease), owner)
  return {tonumber(token), record_of(id, task, 'x', now)}
end

local length = redis.call('LLEN', KEYS[LINE])
if length > 0 then
  length = length - drop_overdue(owner, now)
end
local at = length > 0 and redis.call('HEXISTS', KEYS[WAITING], owner) == 1 and redis.call('LPOS', KEYS[LINE], owner)
local ready = redis.call('ZRANGEBYSCORE', KEYS[DUE], '-inf', string.format('%d', now), 'LIMIT', at or length, '1')[1]
if ready then
  id = (at or length) == 0 and ready or redis.call('ZRANGE', KEYS[DUE], '0', '0')[1]
  if at then
    drop(owner)
  end
  -- The last token stands beside the tasks: no id is empty.
  local known = redis.call('HMGET', KEYS[TASKS], id, '')
  task = task_of(known[1])
  if not task then
    redis.call('ZREM', KEYS[DUE], id)
    return redis.error_reply('CONFLICT ' .. KEYS[TASKS] .. ' holds no tasks')
  end
  local class, of = 1, 4
  if task.abandoned == '1' then
    class, of = 3, 8
  end
  token = math.max((known[2] or 0) + 1, now)
  token = token + (class - token) % of
  task.attempt = task.attempt + 1
  local text = string.format('%d', token)
  redis.call('HSET', KEYS[TASKS], id, text_of(task), '', text)
  redis.call('ZREM', KEYS[DUE], id)
  redis.call('HSET', KEYS[WORKERS], owner, text .. ' ' .. id)
  redis.call('ZADD', KEYS[ENDS], string.format('%d', now + lease), owner)
  if length > 0 then
    call_waiters(now)
  end
  return {token, record_of(id, task, 'x', now)}
end

local within = ARGV[HEARTBEAT_WITHIN]
if not within then
  if at then
    drop(owner)
  end
  call_waiters(now)
  return {-1, 0, at and 1 or 0, 1, 0}
end
if not at then
  at = redis.call('RPUSH', KEYS[LINE], owner) - 1
end
local event = at == 0 and next_event()
local told = event and string.format('%d', event) or '-'
local overdue = math.floor(now / 1000) + within
redis.call('HSET', KEYS[WAITING], owner, string.format('%s %d %s', told, overdue, ARGV[INBOX]))
redis.call('PEXPIRE', KEYS[LINE], DAY)
redis.call('PEXPIRE', KEYS[WAITING], DAY)
-- The leader before may have been dropped.
call_waiters(now)
return {event and math.max(event - now, 0) or -1, 0, (length > 0 and at < length) and 1 or 0, 1, at + 1}
