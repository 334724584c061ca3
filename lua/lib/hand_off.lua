-- Lets waiters in. `name` is the table that name.lua describes.
--
-- A release, a waiter that leaves, and a waiter that is found to be gone let in the next in the same script. So if a
-- waiter could be let in, its lock has expired or was deleted, and the next script that looks lets it in.
-- use: mode, holders, grant, queue, broken

-- Counts a waiter that is dropped.
local function count_dropped(name)
  name[DROPPED] = (name[DROPPED] or 0) + 1
end

-- Whether the script may drop no more waiters: the next script goes on.
local function has_dropped_most(name)
  return name[DROPPED] and name[DROPPED] >= MOST_DROPPED
end

-- The first of a queue. Those before it whose heartbeat is overdue are dropped, but for one that has an inbox: all heartbeats
-- are overdue when the server stood still, or was replaced. It is dropped when that is longer ago than its ttl. `asking`, the
-- owner that has sent this request, lives. With `take` the owner is taken off the queue, though it stays among the waiters.
-- Gives owner, ttl, mode, inbox, for how many milliseconds it needs no heartbeat, and where it hears; nil from an empty
-- queue, or if the script may drop no more.
local function first_of(name, queue, asking, take)
  while not has_dropped_most(name) do
    local owner = name[POPPED]
    name[POPPED] = nil
    if not owner and take then
      owner = redis.call('LPOP', queue)
    elseif not owner then
      owner = redis.call('LINDEX', queue, '0')
    end
    if not owner then
      return nil
    end
    local waiter = redis.call('HGET', name[WAITERS], owner) or ''
    local overdue, hears_at, ttl, mode, inbox = string.match(waiter, ANY_WAITER)
    local left = math.ceil((overdue or 0) - name[NOW] / 1000)
    if ttl and (left > 0 or owner == asking or (inbox ~= '' and left > -ttl)) then
      return owner, ttl, mode, inbox, left, hears_at
    end
    if not take then
      redis.call('LPOP', queue)
    end
    redis.call('HDEL', name[WAITERS], owner)
    count_dropped(name)
  end
end

-- The waiter that is to be let in next, as first_of gives it. Readers go first after an exclusive holder, unless the
-- first of the others wants to go before them, and where nobody else waits. A queue that is empty has no letter any
-- more.
local function next_waiter(name, asking, after_exclusive, take)
  local first, reader = {}, {}
  if may_have(name, 'q') then
    first = {first_of(name, name[QUEUE], asking, take)}
    name[LETTERS] = (first[1] or has_dropped_most(name)) and name[LETTERS] or string.gsub(name[LETTERS], 'q', '')
  end
  if may_have(name, 'r') and (not first[1] or (after_exclusive and first[3] ~= 'w')) then
    reader = {first_of(name, name[READ_QUEUE], asking, take)}
    name[LETTERS] = (reader[1] or has_dropped_most(name)) and name[LETTERS] or string.gsub(name[LETTERS], 'r', '')
  end
  return unpack(reader[1] and reader or first)
end

-- How many listen to an inbox; nil where that can't be counted. A waiter that hears at another server doesn't know yet that
-- this one has the name.
local function listeners_of(inbox, hears_at)
  local count = string.find(inbox, TAG, 1, true) and 'SHARDNUMSUB' or 'NUMSUB'
  local counted = inbox ~= '' and redis.pcall('PUBSUB', count, inbox)
  local listeners = counted and not counted.err and counted[2] or nil
  if listeners == 0 and hears_at ~= '' then
    local info = redis.pcall('INFO', 'server')
    local is_here = type(info) == 'string' and string.match(info, RUN_ID) == hears_at
    return is_here and 0 or nil
  end
  return listeners
end

-- Makes a lease end after `left` milliseconds.
local function shorten(name, owner, mode, left)
  if is_exclusive(mode) then
    redis.call('PEXPIRE', name[LOCK], left)
  else
    redis.call('ZADD', name[HOLDERS], name[CLOCK] + left, member_of(owner, mode))
    keep_until(name, last_end(name))
  end
end

-- Lets a waiter in, and tells it. A waiter that can't be told has the lock until its next heartbeat, which finds it. One whose
-- heartbeat is overdue may be gone although its connection is there: it has half a ttl in which to ask, and is told to.
local function grant_and_tell(name, owner, ttl, mode, inbox, left, can_hear)
  local is_overdue = left <= 0
  left = is_overdue and math.ceil(ttl / 2) or math.min(ttl, left)
  grant(name, owner, can_hear and not is_overdue and ttl or left, mode)
  local publish = string.find(inbox, TAG, 1, true) and 'SPUBLISH' or 'PUBLISH'
  local token = is_overdue and 0 or name[STORED]
  local told = can_hear and redis.pcall(publish, inbox, string.format('%s %d', owner, token))
  if type(told) == 'table' and not is_overdue then
    shorten(name, owner, mode, left)
  end
end

-- Has the last of a queue that hears ask, which goes on where the script has dropped as many as it may. Whoever came last
-- lives most likely. If none of the last hears, the next heartbeat of any goes on.
local function wake_last(name, queue)
  local last = redis.call('LRANGE', queue, -MOST_DROPPED, '-1')
  for at = #last, 1, -1 do
    local waiter = redis.call('HGET', name[WAITERS], last[at]) or ''
    local _, hears_at, _, _, inbox = string.match(waiter, ANY_WAITER)
    if inbox and (listeners_of(inbox, hears_at) or 0) > 0 then
      redis.pcall(string.find(inbox, TAG, 1, true) and 'SPUBLISH' or 'PUBLISH', inbox, last[at] .. ' 0')
      return
    end
  end
end

-- Lets in, one after the other, the waiters whose turn it is. Gives the token of `asking`, if it was let in. `leaving`
-- is the owner that has just released: a late copy of its first request may have put it into the queue.
local function hand_off(name, asking, after_exclusive, leaving)
  local token
  while (not name[HELD] or is_shared(name)) and not has_dropped_most(name) do
    -- A free lock goes to the first waiter, so whoever is looked at is taken off the queue at once. But a waiter behind
    -- readers, or one that doesn't fit beside the holders, stays.
    local take = not name[HELD] and not may_have(name, 'r')
    local owner, ttl, mode, inbox, left, hears_at = next_waiter(name, asking, after_exclusive, take)
    if not owner then
      break
    end
    -- PUBLISH would count others, too, and replicas hear it as well: where nobody listens nothing is published.
    local listeners
    if owner ~= asking then
      listeners = listeners_of(inbox, hears_at)
    end
    local is_gone = listeners == 0 or owner == leaving or is_broken(name, owner)
    if not is_gone and not fits(name, mode) then
      break
    end
    if not take then
      redis.call('LPOP', queue_of(name, mode))
    end
    if redis.call('HDEL', name[WAITERS], owner, leaving or owner) == 2 then
      redis.call('LREM', name[QUEUE], 1, leaving)
    end
    if owner == asking then
      token = grant(name, owner, ttl, mode)
    elseif is_gone then
      count_dropped(name)
    else
      grant_and_tell(name, owner, ttl, mode, inbox, left, listeners)
    end
  end
  if not asking and has_dropped_most(name) and (not name[HELD] or is_shared(name)) then
    wake_last(name, name[QUEUE])
    wake_last(name, name[READ_QUEUE])
  end
  return token
end
