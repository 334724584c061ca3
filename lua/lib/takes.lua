-- How a worker takes a task.

-- Gives a worker the task that is ready for it, if there is one: the first in the line gets the first, and one behind others gets
-- one if there are as many more. `at` is its place in the line, if it is there, and `length` how many are. Gives the token and
-- the task.
local function take_task(owner, lease, at, length, now)
  local ready = redis.call('ZRANGEBYSCORE', KEYS[DUE], '-inf', string.format('%d', now), 'LIMIT', at or length, '1')[1]
  if not ready then
    return nil
  end
  local id = (at or length) == 0 and ready or redis.call('ZRANGE', KEYS[DUE], '0', '0')[1]
  if at then
    drop(owner)
  end
  -- The last token stands beside the tasks: no id is empty.
  local known = redis.call('HMGET', KEYS[TASKS], id, '')
  local known_for, policy, attempt, abandoned, behind = string.match(known[1] or '', TO_TAKE)
  if not known_for then
    redis.call('ZREM', KEYS[DUE], id)
    return nil, 'CONFLICT ' .. KEYS[TASKS] .. ' holds no tasks'
  end
  local class, of = 1, 4
  if abandoned == '1' then
    class, of = 3, 8
  end
  local token = math.max((known[2] or 0) + 1, now)
  token = token + (class - token) % of
  local text, shown = string.format('%d', token), attempt + 1 .. ' ' .. abandoned .. behind
  redis.call('HSET', KEYS[TASKS], id, known_for .. policy .. shown, '', text)
  redis.call('ZREM', KEYS[DUE], id)
  redis.call('HSET', KEYS[WORKERS], owner, text .. ' ' .. known_for .. ' ' .. id)
  redis.call('ZADD', KEYS[ENDS], string.format('%d', now + lease), owner)
  if length > 0 then
    call_waiters(now)
  end
  return token, record_of(id, shown, 'x', now)
end
