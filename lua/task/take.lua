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
-- use: time, tasks, workers, takes

local owner, lease = ARGV[OWNER], ARGV[TTL] * 1000
local now = server_time()

end_leases(now)
local token, _, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
local shown = id and string.match(redis.call('HGET', KEYS[TASKS], id) or '', SHOWN)
if shown then
  redis.call('ZADD', KEYS[ENDS], string.format('%d', now + lease), owner)
  return {tonumber(token), record_of(id, shown, 'x', now)}
end

local length = redis.call('LLEN', KEYS[LINE])
if length > 0 then
  length = length - drop_overdue(owner, now)
end
local at = length > 0 and redis.call('HEXISTS', KEYS[WAITING], owner) == 1 and redis.call('LPOS', KEYS[LINE], owner)
local record
token, record = take_task(owner, lease, at, length, now)
if token then
  return {token, record}
elseif record then
  return redis.error_reply(record)
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
