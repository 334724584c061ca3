-- Included behind held.lua and token.lua by the scripts that take and release a lock, behind what a free lock needs:
-- the line of those that wait.
--
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held exclusively, even after a clean release
-- KEYS[3]  the line of those that wait for it exclusively, or for permits: a list of owners, first come first
-- KEYS[4]  who waits: a hash, from owner to "<overdue> <ttl> <mode> <inbox>": when its next heartbeat is overdue, in
--          milliseconds of the server's time; the ttl that it asks for, in milliseconds; how it wants the lock; the
--          channel on which it hears that it has it, empty when it can't hear
-- KEYS[5]  the line of those that wait to read: they are let in together
--
-- DAY is what its keys live for at most, and `stored` what the counter holds.
--
-- Whoever leaves, or is found to be gone, lets in who comes next in the same script. So those in line can't be let in,
-- or what is held has expired or was deleted, and the next script that sees it lets them in.

-- Lets an owner in, and gives its token.
local function grant(owner, ttl, mode)
  stored = next_token(stored, now, not is_exclusive(mode))
  if is_exclusive(mode) then
    redis.call('SET', KEYS[1], owner, 'PX', ttl)
    held = owner
  else
    if not held then
      -- Who is still in it was let in before somebody deleted the lock.
      redis.call('DEL', KEYS[6])
      held = mode == 'r' and READERS or PERMITS
    end
    -- Read first, and no key without a ttl: a command that is denied leaves nothing that stays.
    local last = math.max(last_end(), clock + ttl)
    redis.call('ZADD', KEYS[6], clock + ttl, member_of(owner, mode))
    keep(last)
    used = used + string.match(member_of(owner, mode), '^%d+')
  end
  redis.call('SET', KEYS[2], stored, 'PX', DAY)
  return stored
end

local function line_of(mode)
  return mode == 'r' and KEYS[5] or KEYS[3]
end

local function leave(line, owner)
  redis.call('LREM', line, 1, owner)
  redis.call('HDEL', KEYS[4], owner)
end

-- The first of a line, without those before it whose heartbeat is overdue: they are dropped. Whoever asks just now
-- lives. Gives its owner, ttl, mode, inbox, and for how many milliseconds it needs no heartbeat; nil when none is left.
local function first_of(line, asking)
  while true do
    local owner = redis.call('LINDEX', line, 0)
    if not owner then
      return nil
    end
    local waiter = redis.call('HGET', KEYS[4], owner) or ''
    local overdue, ttl, mode, inbox = string.match(waiter, '^(%d+) (%d+) (%S+) (.*)$')
    local left = math.ceil((overdue or 0) - now / 1000)
    if ttl and (left > 0 or owner == asking) then
      return owner, ttl, mode, inbox, left
    end
    leave(line, owner)
  end
end

-- Who is to be let in next. Readers are when an exclusive holder has ended, unless the first of the others wants to
-- go before them, and when nobody else waits.
local function next_in_line(asking, after_exclusive)
  local first = {first_of(KEYS[3], asking)}
  if not first[1] or (after_exclusive and first[3] ~= 'w') then
    local reader = {first_of(KEYS[5], asking)}
    if reader[1] then
      return unpack(reader)
    end
  end
  return unpack(first)
end

-- How many hear what is said to an inbox; nil when they can't be counted. PUBLISH counts others, too, and its message
-- goes on to replicas, where somebody may listen who isn't counted: so where there are none nothing is said.
local function listeners(inbox)
  local counted = redis.pcall('PUBSUB', 'NUMSUB', inbox)
  return not counted.err and counted[2] or nil
end

-- Tells an owner that it has been let in. One that can't be told is let in until its next heartbeat, which finds it.
local function tell(owner, mode, inbox, left)
  local told = redis.pcall('PUBLISH', inbox, string.format('%s %.0f', owner, stored))
  if type(told) == 'table' and is_exclusive(mode) then
    redis.call('PEXPIRE', KEYS[1], left)
  elseif type(told) == 'table' then
    redis.call('ZADD', KEYS[6], clock + left, member_of(owner, mode))
    keep(last_end())
  end
end

-- Lets in, one after the other, those whose turn it is. One that nobody hears is passed over: its connection is gone.
-- One that has no inbox, or whose listeners can't be counted, is let in until its next heartbeat. Gives the token of
-- whoever asks, if it was let in.
local function hand_on(asking, after_exclusive)
  local its
  while not held or is_shared() do
    local owner, ttl, mode, inbox, left = next_in_line(asking, after_exclusive)
    if not owner then
      break
    end
    local heard = owner == asking and 1 or inbox ~= '' and listeners(inbox) or nil
    if heard ~= 0 and not fits(mode) then
      break
    end
    leave(line_of(mode), owner)
    if owner == asking then
      its = grant(owner, ttl, mode)
    elseif heard ~= 0 then
      left = math.min(ttl, left)
      grant(owner, heard and ttl or left, mode)
      if heard then
        tell(owner, mode, inbox, left)
      end
    end
  end
  return its
end
