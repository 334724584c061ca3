-- Included behind grant.lua where somebody may wait: the lines of those that do.
--
-- KEYS[2]  the counter of fencing tokens, and behind it which lines there may be: q for KEYS[3], r for KEYS[5]. Where
--          the letter isn't there nobody stands in that line, so that a lock for which nobody waits needs no look at them
-- KEYS[3]  the line of those that wait for it exclusively, or for permits: a list of owners, first come first
-- KEYS[4]  who waits: a hash, from owner to "<overdue> <ttl> <mode> <inbox>": when its next heartbeat is overdue, in
--          milliseconds of the server's time; the ttl that it asks for, in milliseconds; how it wants the lock; the
--          channel on which it hears that it has it, empty when it can't hear. Who isn't in it is in no line
-- KEYS[5]  the line of those that wait to read: they are let in together
--
-- Whoever leaves, or is found to be gone, lets in who comes next in the same script. So those in line can't be let in,
-- or what is held has expired or was deleted, and the next script that sees it lets them in.

local function may_have(letter)
  return string.find(lines, letter, 1, true)
end

-- One that was taken off the line before this began, and whose turn it is to be looked at.
local popped

local function line_of(mode)
  return mode == 'r' and KEYS[5] or KEYS[3]
end

-- Takes an owner out of the line, if it is in it.
local function leave(line, owner)
  if redis.call('HDEL', KEYS[4], owner) == 1 then
    redis.call('LREM', line, 1, owner)
  end
end

-- The first of a line, without those before it whose heartbeat is overdue: they are dropped. Whoever asks just now
-- lives. Gives its owner, ttl, mode, inbox, and for how many milliseconds it needs no heartbeat; nil when none is left.
-- `take`: the owner is taken off the line, but not out of KEYS[4].
local function first_of(line, asking, take)
  while true do
    local owner = popped
    popped = nil
    if not owner and take then
      owner = redis.call('LPOP', line)
    elseif not owner then
      owner = redis.call('LINDEX', line, '0')
    end
    if not owner then
      return nil
    end
    local waiter = redis.call('HGET', KEYS[4], owner) or ''
    local overdue, ttl, mode, inbox = string.match(waiter, '^(%d+) (%d+) (%S+) (.*)$')
    local left = math.ceil((overdue or 0) - now / 1000)
    if ttl and (left > 0 or owner == asking) then
      return owner, ttl, mode, inbox, left
    end
    if not take then
      redis.call('LPOP', line)
    end
    redis.call('HDEL', KEYS[4], owner)
  end
end

-- Who is to be let in next. Readers are when an exclusive holder has ended, unless the first of the others wants to
-- go before them, and when nobody else waits. A line that turns out to be empty has no letter any more.
local function next_in_line(asking, after_exclusive, take)
  local first, reader = {}, {}
  if may_have('q') then
    first = {first_of(KEYS[3], asking, take)}
    lines = first[1] and lines or string.gsub(lines, 'q', '')
  end
  if may_have('r') and (not first[1] or (after_exclusive and first[3] ~= 'w')) then
    reader = {first_of(KEYS[5], asking, take)}
    lines = reader[1] and lines or string.gsub(lines, 'r', '')
  end
  return unpack(reader[1] and reader or first)
end

-- Makes the lease of one that was just let in end earlier.
local function shorten(owner, mode, left)
  if is_exclusive(mode) then
    redis.call('PEXPIRE', KEYS[1], left)
  else
    redis.call('ZADD', KEYS[6], clock + left, member_of(owner, mode))
    keep(last_end())
  end
end

-- Lets in, one after the other, those whose turn it is. One that nobody hears is passed over: its connection is gone.
-- One that has no inbox, or whose listeners can't be counted, is let in until its next heartbeat. Gives the token of
-- whoever asks, if it was let in. `leaving` is the owner that has just released: a copy of its first request, which
-- came late, may have put it into the line.
local function hand_on(asking, after_exclusive, leaving)
  local its
  while not held or is_shared() do
    -- A lock that is free goes to the first that is there, so whoever is looked at is taken off the line at once; but
    -- who waits behind readers, or doesn't fit beside those inside, stays.
    local take = not held and not may_have('r')
    local owner, ttl, mode, inbox, left = next_in_line(asking, after_exclusive, take)
    if not owner then
      break
    end
    -- Who is told: PUBLISH counts others, too, and its message goes on to replicas, where somebody may listen who isn't
    -- counted, so where nobody listens nothing is said. Nil when they can't be counted.
    local heard = owner == asking and 1 or nil
    if not heard and inbox ~= '' then
      local counted = redis.pcall('PUBSUB', 'NUMSUB', inbox)
      heard = not counted.err and counted[2] or nil
    end
    if heard ~= 0 and owner ~= leaving and not fits(mode) then
      break
    end
    if not take then
      redis.call('LPOP', line_of(mode))
    end
    if redis.call('HDEL', KEYS[4], owner, leaving or owner) == 2 then
      redis.call('LREM', KEYS[3], 1, leaving)
    end
    if owner == asking then
      its = grant(owner, ttl, mode)
    elseif heard ~= 0 and owner ~= leaving then
      left = math.min(ttl, left)
      grant(owner, heard and ttl or left, mode)
      local told = heard and redis.pcall('PUBLISH', inbox, string.format('%s %d', owner, stored))
      if type(told) == 'table' then
        -- It mustn't be told: it is let in until its next heartbeat, which finds it.
        shorten(owner, mode, left)
      end
    end
  end
  return its
end
