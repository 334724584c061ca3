-- Included by the scripts that take and release a lock, behind what a free lock needs: the line of those that wait.
--
-- KEYS[1]  the lock: a string, the owner, which expires with its lease
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held, even after a clean release
-- KEYS[3]  the line: a list of the owners that wait, first come first
-- KEYS[4]  who waits: a hash, from owner to "<overdue> <ttl> <inbox>": when its next heartbeat is overdue, in
--          milliseconds of the server's time; the ttl that it asks for, in milliseconds; the channel on which it
--          hears that the lock is its own, empty when it can't hear
--
-- DAY is what its keys live for at most. A lock that is released goes to the first in line that lives, in the script that releases it. So a free lock
-- with a line is one that expired or was deleted, and the next script that sees it hands it on.

local function leave(owner)
  redis.call('LREM', KEYS[3], 1, owner)
  redis.call('HDEL', KEYS[4], owner)
end

-- The first in line, without those before it whose heartbeat is overdue: they are dropped. Whoever asks just now
-- lives. Gives its owner, ttl, inbox, and for how many milliseconds it needs no heartbeat; nil when none is left.
local function first_in_line(now, asking)
  while true do
    local owner = redis.call('LINDEX', KEYS[3], 0)
    if not owner then
      return nil
    end
    local waiter = redis.call('HGET', KEYS[4], owner) or ''
    local overdue, ttl, inbox = string.match(waiter, '^(%d+) (%d+) (.*)$')
    local left = math.ceil((overdue or 0) - now / 1000)
    if ttl and (left > 0 or owner == asking) then
      return owner, ttl, inbox, left
    end
    leave(owner)
  end
end

-- Tells one in line that the lock is its own. Gives how many hear it; an error when it can't be told. Listeners are
-- counted first, and where there are none nothing is said: a message goes on to replicas, where somebody may listen
-- who isn't counted.
local function tell(inbox, owner, token)
  local listeners = redis.pcall('PUBSUB', 'NUMSUB', inbox)
  if listeners.err or listeners[2] == 0 then
    return listeners.err and listeners or 0
  end
  return redis.pcall('PUBLISH', inbox, string.format('%s %.0f', owner, token))
end

-- Gives the lock, which is free, to the first in line that lives, and tells it. One that nobody hears is passed
-- over: its connection is gone. One that has no inbox, or can't be told, gets the lock until its next heartbeat,
-- which finds it. Gives the owner; nil when nobody is left.
local function hand_on(token, now, asking)
  while true do
    local owner, ttl, inbox, left = first_in_line(now, asking)
    if not owner then
      return nil
    end
    leave(owner)
    local heard = 1
    if owner ~= asking and inbox ~= '' then
      heard = tell(inbox, owner, token)
    end
    if owner ~= asking and (inbox == '' or type(heard) == 'table') then
      ttl = math.min(ttl, left)
    end
    if heard ~= 0 then
      redis.call('SET', KEYS[1], owner, 'PX', ttl)
      redis.call('SET', KEYS[2], token, 'PX', DAY)
      return owner
    end
  end
end
