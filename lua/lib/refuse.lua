-- Says that a lock is taken, and enters the queue or leaves it. `name` is the table that lib/name.lua describes, `ask`
-- are the arguments of lock/acquire.lua.

-- Drops those that are said to wait in the owner's queue, though it is the first there: their queue was lost, and they
-- are to enter it anew.
local function drop_lost(name, ask)
  local all = redis.pcall('HGETALL', name[WAITERS])
  for at = 1, #all, 2 do
    local _, _, _, mode = string.match(all[at + 1], ANY_WAITER)
    if all[at] ~= ask[OWNER] and (mode == 'r') == (ask[MODE] == 'r') then
      redis.call('HDEL', name[WAITERS], all[at])
    end
  end
end

-- Drops those before the owner whose heartbeat is overdue, so that they don't pile up while the lock is held: those that
-- lib/hand_off.lua would drop without counting who hears them.
local function drop_overdue(name, queue, ask)
  for _ = (name[DROPPED] or 0) + 1, MOST_DROPPED do
    local first = redis.call('LINDEX', queue, '0')
    if not first or first == ask[OWNER] then
      return
    end
    local overdue, _, ttl, _, inbox = string.match(redis.call('HGET', name[WAITERS], first) or '', ANY_WAITER)
    local left = math.ceil((overdue or 0) - name[NOW] / 1000)
    if overdue and (left > 0 or (inbox ~= '' and left > -ttl)) then
      return
    end
    redis.call('LPOP', queue)
    redis.call('HDEL', name[WAITERS], first)
  end
end

-- Enters the queue, or stays in it. Gives its length, whether the owner is a new waiter, and whether it was in the
-- queue before; or an error.
local function enter(name, ask)
  local queue, letter = name[QUEUE], 'q'
  if ask[MODE] == 'r' then
    queue, letter = name[READ_QUEUE], 'r'
  end
  -- A command that is denied leaves nothing that stays: no key without a ttl, and no waiter that is in no queue.
  local overdue = math.floor(name[NOW] / 1000) + ask[HEARTBEAT_WITHIN]
  local hears_at = ask[HEARS_AT] and '@' .. ask[HEARS_AT] or ''
  local waiter = string.format('%d%s %s %s %s', overdue, hears_at, ask[TTL], ask[MODE], ask[INBOX])
  local is_new = redis.call('HSET', name[WAITERS], ask[OWNER], waiter) == 1
  -- The queue tells by its length that it is new. This key doesn't, and may have been lost alone.
  redis.call('PEXPIRE', name[WAITERS], DAY)
  local length = is_new and 0 or redis.call('LLEN', queue)
  -- The queue of a waiter is never empty, but when it was lost.
  local was_queued = length > 0
  if not was_queued then
    length = redis.pcall('RPUSH', queue, ask[OWNER])
    if type(length) == 'table' then
      redis.call('HDEL', name[WAITERS], ask[OWNER])
      return length
    end
  end
  if not is_new or length == 1 then
    redis.call('PEXPIRE', queue, DAY)
  end
  if not was_queued and length == 1 then
    drop_lost(name, ask)
  end
  if name[IS_COUNTED] and not string.find(name[LETTERS], letter, 1, true) then
    name[LETTERS] = letter == 'q' and 'q' .. name[LETTERS] or name[LETTERS] .. 'r'
    local number = string.format('%d', name[STORED])
    redis.call('SET', name[COUNTER], number .. name[LETTERS] .. (name[BROKEN] or ''), 'PX', DAY)
  end
  if not is_new or length % 16 == 0 then
    drop_overdue(name, queue, ask)
  end
  return length, is_new, was_queued
end

-- Gives the answer of lock/acquire.lua. `lock` is what the lock's key says.
local function refuse(name, ask, lock)
  local length, is_new, was_queued = 0, false, false
  if ask[HEARTBEAT_WITHIN] then
    length, is_new, was_queued = enter(name, ask)
    if type(length) == 'table' then
      return length
    end
  elseif name[LETTERS] ~= '' and redis.call('HDEL', name[WAITERS], ask[OWNER]) == 1 then
    redis.call('LREM', ask[MODE] == 'r' and name[READ_QUEUE] or name[QUEUE], 1, ask[OWNER])
  end
  -- Those that share it end one by one. Of readers, the last to end may be released before one that died ends.
  local has_sharers = name[HELD] == MARK_READERS or name[HELD] == MARK_PERMITS
  local next_end = has_sharers and redis.call('ZRANGE', name[HOLDERS], '0', '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')[2]
  local remaining = next_end and next_end - name[CLOCK] or redis.call('PTTL', name[LOCK])
  local is_open = not name[HELD] or has_sharers
  if is_open and (name[DROPPED] or 0) >= MOST_DROPPED then
    -- More are to be dropped before the owner's turn can come: it asks again at once.
    return {0, name[STORED], was_queued and 1 or 0, 0, length}
  end
  local knows_holder = has_sharers or name[HELD] == MARK_KEPT or name[STORED] % 2 == 1
  -- Behind the 36 characters of an owner's id and a slash.
  local holder = is_new and lock and string.byte(lock, 37) == 47 and string.sub(lock, 38) or nil
  return {remaining, name[STORED], was_queued and 1 or 0, knows_holder and 1 or 0, length, holder}
end
