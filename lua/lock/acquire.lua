-- Takes a lock, or says that it is taken, and enters its line or leaves it.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held exclusively, even after a clean release; and behind
--          it which lines there may be, see line.lua
-- KEYS[3]  the line, see line.lua
-- KEYS[4]  who waits, see line.lua
-- KEYS[5]  the line of those that wait to read, see line.lua
-- KEYS[6]  who shares the lock, see held.lua
-- KEYS[7]  the value that the lock protects, a string; without it there is none, or nobody asks
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds
-- ARGV[3]  the mode, see mode.lua; R: read, and before those that wait for the lock exclusively
-- ARGV[4]  in how many milliseconds the next heartbeat is overdue; without it the owner doesn't wait, and leaves
--          the line if it is in it
-- ARGV[5]  the owner's inbox, empty when it can't hear
--
-- Returns
--   token                 the owner has it; token % 4 is 3 when the exclusive holder before never released
--   {token, value}        the same, where there may be a value: false when there is none
--   {remaining, counter, stood, known, length, holder}
--                         taken, for so many milliseconds; -1: by somebody who set no ttl. Any token that the owner is
--                         granted after this is above the counter. Stood 1: it was in the line before. Known 0: the
--                         holder is no program of ours, and won't hand it on. Length: of the line, the owner included;
--                         0 when it doesn't wait. Holder: <host>/<pid>/<thread>, where one of ours has it exclusively;
--                         only who enters the line is told
--   error CONFLICT        the counter holds something else; nothing was changed
--
-- Repeated by its owner it gives the same token, or a later one to who shares, and a full ttl; or keeps its place in
-- line. All that a free lock needs is read before the first write: a command that is denied or refused leaves nothing
-- behind. What a free lock costs comes first, and needs none of what is included.

local DAY = '86400000' -- milliseconds: no key here lives for longer unless it is used
local HOUR = 3600 * 1000000 -- microseconds
local owner, ttl, mode, promise, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local counter = redis.pcall('GET', KEYS[2])
if type(counter) == 'table' then
  if not string.find(counter.err, 'WRONGTYPE', 1, true) then
    return counter
  end
  counter = 'of another type'
end
local value = KEYS[7] and redis.call('GET', KEYS[7])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- An exclusive lock that was released, and for which nobody waits: then the counter is an even number and nothing else.
local plain = tonumber(counter)
if plain and plain % 2 == 0 and plain >= 0 and plain < 2 ^ 52 and (mode == 'x' or mode == 'w') then
  local token = plain < now and now or plain + 1
  token = token + (1 - token) % 4
  if redis.call('SET', KEYS[1], owner, 'NX', 'PX', ttl) then
    if redis.pcall('INCRBY', KEYS[2], string.format('%d', token - plain)) == token then
      -- Once an hour is enough for a key that lives for a day, if the lease doesn't last for hours (of a ttl of eight
      -- digits); a counter ahead of the clock tells no time.
      if now <= plain or now - now % HOUR > plain or #ttl > 7 then
        redis.call('PEXPIRE', KEYS[2], DAY)
      end
      return KEYS[7] and {token, value} or token
    end
    -- It is no number as the server has it, or that command is denied.
    redis.call('DEL', KEYS[1])
  end
end

-- include counter.lua
if not stored then
  return redis.error_reply('CONFLICT ' .. KEYS[2] .. ' holds no counter')
end
local first = mode == 'R'
mode = first and 'r' or mode
local line, letter = KEYS[3], 'q'
if mode == 'r' then
  line, letter = KEYS[5], 'r'
end
local lock = redis.call('GET', KEYS[1])
local known = stored % 2 == 1 or lock == 'crosslock:kept'
local remaining

-- What one other holds exclusively isn't to be had, and needs none of this.
if not lock or lock == owner or string.find(lock, 'crosslock:[rp]') == 1 then
  -- include token.lua
  -- include mode.lua
  -- include held.lua
  -- include grant.lua

  local function granted(token)
    return KEYS[7] and {token, value} or token
  end

  local exclusive = is_exclusive(mode)
  if held == owner then
    redis.call('PEXPIRE', KEYS[1], ttl)
    if stored % 2 == 0 then
      stored = next_token()
      write_counter()
    end
    return granted(stored)
  end
  if is_shared() and not exclusive and redis.call('ZSCORE', KEYS[6], member_of(owner, mode)) then
    return granted(grant(owner, ttl, mode))
  end

  local token
  if lines ~= '' then
    -- include line.lua
    local after_exclusive = is_abandoned()
    token = hand_on(owner, after_exclusive)
    if not token and fits(mode) and (first or not may_have('q')) then
      leave(line, owner)
      token = grant(owner, ttl, mode)
    elseif not token and not promise then
      leave(line, owner)
      hand_on(nil, after_exclusive)
    end
  elseif fits(mode) then
    token = grant(owner, ttl, mode)
  end
  if token then
    return granted(token)
  end
  known = is_shared() or stored % 2 == 1
  if held == PERMITS then
    -- The next that may come back.
    remaining = redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2] - clock
  end
end

local entered, is_new, length = false, true, 0
if promise then
  -- A command that is denied leaves nothing that stays: no key without a ttl, and nobody who is in KEYS[4] alone.
  local overdue = math.floor(now / 1000) + promise
  local waiter = string.format('%d %s %s %s', overdue, ttl, mode, inbox)
  entered = redis.call('HSET', KEYS[4], owner, waiter) == 1
  redis.call('PEXPIRE', KEYS[4], DAY)
  length = not entered and redis.call('LLEN', line) or 0
  -- Or its line was lost.
  is_new = length == 0
  if is_new then
    length = redis.pcall('RPUSH', line, owner)
    if type(length) == 'table' then
      redis.call('HDEL', KEYS[4], owner)
      return length
    end
  end
  if not entered or length == 1 then
    redis.call('PEXPIRE', line, DAY)
  end
  if is_new and length == 1 then
    -- It is the first in this line. Who is said to stand there, too, stood in one that was lost, and is to enter anew.
    local all = redis.pcall('HGETALL', KEYS[4])
    for at = 1, #all, 2 do
      local reads = string.find(all[at + 1], '^%d+ %d+ r ') ~= nil
      if all[at] ~= owner and reads == (mode == 'r') then
        redis.call('HDEL', KEYS[4], all[at])
      end
    end
  end
  if counter and not string.find(lines, letter, 1, true) then
    lines = letter == 'q' and 'q' .. lines or lines .. 'r'
    redis.call('SET', KEYS[2], string.format('%d', stored) .. lines, 'PX', DAY)
  end
  if not entered or length % 16 == 0 then
    -- Those in front of it whose heartbeat is overdue go now, so that they don't pile up while the lock is held.
    local dead
    repeat
      local head = redis.call('LINDEX', line, '0')
      local waiter = head and head ~= owner and redis.call('HGET', KEYS[4], head)
      dead = head and head ~= owner and (string.match(waiter or '', '^%d+') or 0) * 1000 <= now
      if dead then
        redis.call('LPOP', line)
        redis.call('HDEL', KEYS[4], head)
      end
    until not dead
  end
elseif lines ~= '' and redis.call('HDEL', KEYS[4], owner) == 1 then
  redis.call('LREM', line, 1, owner)
end
remaining = remaining or redis.call('PTTL', KEYS[1])
local holder = entered and lock and string.byte(lock, 37) == 47 and string.sub(lock, 38) or nil
return {remaining, stored, is_new and 0 or 1, known and 1 or 0, length, holder}
