-- The line of the workers that wait for a task: who is called, and who is dropped. The first is the leader. A worker was
-- told '-' (nothing), 'c' (to ask), or until when to sleep, in microseconds of the server's time.

-- When the leader has something to do: a task is due, or a lease ends.
local function next_event()
  local due = tonumber(redis.call('ZRANGE', KEYS[DUE], '0', '0', 'WITHSCORES')[2] or BURIED_FROM)
  local ends = tonumber(redis.call('ZRANGE', KEYS[ENDS], '0', '0', 'WITHSCORES')[2] or BURIED_FROM)
  local event = math.min(due, ends)
  return event < BURIED_FROM and event or nil
end

local function drop(owner)
  redis.call('LREM', KEYS[LINE], 1, owner)
  redis.call('HDEL', KEYS[WAITING], owner)
end

-- Drops those at the head of the line that don't ask any more. Says how many.
local function drop_overdue(asking, now)
  for dropped = 0, MOST_ENDED - 1 do
    local first = redis.call('LINDEX', KEYS[LINE], '0')
    if not first or first == asking then
      return dropped
    end
    local _, overdue = string.match(redis.call('HGET', KEYS[WAITING], first) or '', IN_LINE)
    if overdue and overdue * 1000 > now then
      return dropped
    end
    drop(first)
  end
  return MOST_ENDED
end

-- Calls the workers that have something to do: as many as tasks are ready; and the leader, if it was told nothing or too
-- late a time. A worker whose inbox nobody hears is gone.
local function call_waiters(now)
  if redis.call('EXISTS', KEYS[LINE]) == 0 then
    return
  end
  local event = next_event()
  if not event then
    return
  end
  local ready = redis.call('ZCOUNT', KEYS[DUE], '-inf', string.format('%d', now))
  local at, most = 0, math.min(math.max(ready, 1), MOST_CALLED)
  for _ = 1, MOST_CALLED + MOST_ENDED do
    local owner = at < most and redis.call('LINDEX', KEYS[LINE], at)
    if not owner then
      return
    end
    local told, overdue, inbox = string.match(redis.call('HGET', KEYS[WAITING], owner) or '', IN_LINE)
    local heard
    if told and told ~= 'c' and (at < ready or told == '-' or event < tonumber(told)) then
      local publish = string.find(inbox, TAG, 1, true) and 'SPUBLISH' or 'PUBLISH'
      heard = inbox ~= '' and redis.pcall(publish, inbox, owner .. ' 0')
      redis.call('HSET', KEYS[WAITING], owner, 'c ' .. overdue .. ' ' .. inbox)
    end
    if told and heard ~= 0 then
      at = at + 1
    else
      drop(owner)
    end
  end
end
