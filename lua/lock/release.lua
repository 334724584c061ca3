-- Ends a lease, and lets in who comes next. An owner that waits leaves the line.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held exclusively, even after a clean release; and behind
--          it which lines there may be, see line.lua
-- KEYS[3]  the line, see line.lua
-- KEYS[4]  who waits, see line.lua
-- KEYS[5]  the line of those that wait to read, see line.lua
-- KEYS[6]  who shares the lock, see held.lua
-- KEYS[7]  the value that the lock protects; without it the value stays as it is
-- ARGV[1]  the owner
-- ARGV[2]  what the counter becomes when the lock was held exclusively: above the last token that was used, see token.lua;
--          0 when the owner doesn't know whether it was granted one
-- ARGV[3]  the mode, see mode.lua
-- ARGV[4]  the new value, a string: it is written if the lock is the owner's
-- ARGV[5]  for how many milliseconds what was held stays taken, though nobody has it; without it, it is free at once
--
-- Returns
--   1  released, now or (if it was held exclusively) by the same command before
--   0  the lock isn't the owner's; nothing was changed, but that the owner has left the line
--   2  the same, and the same command may have released it before: it was shared, or others were let in since. What the
--      owner got anew meanwhile, by a copy of its request that came late, is released
--
-- The counter never goes back. Where it is above what the release brings, the owner has the lock anew, and doesn't know
-- the token: that is released as if ARGV[2] were 0, without the value, since others may have stored a later one.
--
-- A write that frees something comes before those that need memory: a server without any refuses these, but not
-- after such a one.

local DAY = '86400000' -- milliseconds
local owner, counter_after, mode, keep_for = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[5]
local exclusive = mode == 'x' or mode == 'w'

local lock, counter = unpack(redis.call('MGET', KEYS[1], KEYS[2]))

-- An exclusive lock for which nobody waits: then the counter is a number and nothing else.
local plain = tonumber(counter)
if exclusive and lock == owner and plain and plain < counter_after and not keep_for then
  -- It lives for longer than the lease that it was last counted or renewed for.
  redis.call('DEL', KEYS[1])
  if plain + 1 ~= counter_after or redis.pcall('INCR', KEYS[2]) ~= counter_after then
    -- The lease was handed over inside its process, or ended by a panic; or INCR, which costs less, is denied.
    redis.call('SET', KEYS[2], ARGV[2], 'KEEPTTL')
  end
  if KEYS[7] then
    redis.call('SET', KEYS[7], ARGV[4])
  end
  return 1
end

-- The usual hand-off, without what is included below: nobody waits to read, and the first that waits wants the lock
-- exclusively, lives, and hears. It is let in as hand_on in line.lua lets it in; whoever is none of this is left to that.
local first
local number = exclusive and lock == owner and not keep_for and string.match(counter or '', '^(%d+)q$')
if number and tonumber(number) < counter_after and counter_after % 2 == 0 then
  first = redis.pcall('LPOP', KEYS[3])
  first = type(first) == 'string' and first or nil
  local waiter = first and first ~= owner and redis.pcall('HGET', KEYS[4], first)
  local overdue, ttl, inbox = string.match(type(waiter) == 'string' and waiter or '', '^(%d+) (%d+) [xw] (.+)$')
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if overdue and overdue * 1000 > now and (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then
    local removed = redis.pcall('HDEL', KEYS[4], first, owner)
    if removed == 2 then
      redis.call('LREM', KEYS[3], 1, owner)
    end
    if type(removed) == 'number' then
      local floor = math.max(counter_after + 1, now)
      local token = string.format('%d', floor + (1 - floor) % 4)
      redis.call('SET', KEYS[1], first, 'PX', ttl)
      redis.call('SET', KEYS[2], token .. 'q', 'PX', DAY)
      if KEYS[7] then
        redis.call('SET', KEYS[7], ARGV[4])
      end
      if type(redis.pcall('PUBLISH', inbox, first .. ' ' .. token)) == 'table' then
        redis.call('PEXPIRE', KEYS[1], math.min(ttl, math.ceil(overdue - now / 1000)))
      end
      return 1
    end
  end
end

-- include mode.lua
local was_held = false
if not exclusive and not keep_for and lock and string.find(lock, '^crosslock:[rp]') then
  was_held = redis.call('ZREM', KEYS[6], member_of(owner, mode)) == 1
  if was_held and plain and redis.call('EXISTS', KEYS[6]) == 0 then
    redis.call('DEL', KEYS[1])
    return 1
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- include counter.lua
lines = lines or 'qr'
-- include token.lua
-- include held.lua
-- include grant.lua
-- include line.lua
popped = first

local anew = counter_after > 0 and stored and stored >= counter_after
local knows_token = counter_after > 0 and not anew

-- Lets in who comes next, and says whether the lock is held then. A line that can't be read hinders no release: those
-- in it find that the lock is free.
local function hands_on(after_exclusive, leaving)
  local before = stored
  if lines ~= '' and not pcall(hand_on, nil, after_exclusive, leaving) then
    -- Nobody has it, and what was counted for one who was to be let in is nobody's lease.
    stored = before % 2 == 0 and stored + stored % 2 or stored
    return false
  end
  return held
end

-- Has the first of each line ask, which learns for how long the lock stays taken: no token is 0.
local function wake()
  for letter, line in pairs({q = KEYS[3], r = KEYS[5]}) do
    local first, _, _, inbox = nil, nil, nil, ''
    if may_have(letter) then
      first, _, _, inbox = first_of(line)
    end
    if first and inbox ~= '' then
      redis.call('PUBLISH', inbox, first .. ' 0')
    end
  end
end

if exclusive then
  if held ~= owner then
    local left, failure = pcall(leave, KEYS[3], owner)
    if counter_after == 0 then
      if not left then
        error(failure)
      end
      if stored and lines ~= '' then
        hands_on(not held and is_abandoned())
      end
      return 0
    end
    -- What became of a lease that is no more: a counter below that of its release, or none, knows of no release.
    return counter and stored == counter_after and 1 or counter and stored and stored > counter_after and 2 or 0
  end
  if knows_token then
    stored = counter_after
  elseif stored and stored % 4 == 1 then
    -- Nobody worked with it. An odd number whose second bit is set says that the lock was found abandoned: nobody was
    -- told, so it stays for the next holder.
    stored = stored + 1
  end
  held = nil
  if keep_for then
    redis.call('DEL', KEYS[1])
    redis.call('SET', KEYS[1], KEPT, 'PX', keep_for)
    write_counter()
    pcall(wake)
  elseif not stored or not hands_on(true, owner) then
    redis.call('DEL', KEYS[1])
    if stored and (counter or knows_token) then
      write_counter()
    end
  end
  if KEYS[7] and not anew then
    redis.call('SET', KEYS[7], ARGV[4])
  end
  return anew and 2 or 1
end

-- What stays out is nobody's: a renewal that comes late doesn't find it.
local kept = count_of(mode) .. ' kept ' .. owner
if keep_for and is_shared() then
  if redis.call('ZREM', KEYS[6], member_of(owner, mode)) == 1 then
    if redis.call('ZADD', KEYS[6], clock + keep_for, kept) == 0 then
      -- It was kept before, and granted again by a copy of its request that came late.
      used = used - count_of(mode)
    end
    keep(last_end())
    pcall(wake)
    return 1
  elseif redis.call('ZSCORE', KEYS[6], kept) then
    return 1
  end
end
if was_held and held then
  used = used - count_of(mode)
  keep(last_end())
elseif was_held then
  redis.call('DEL', KEYS[1])
end
if lines ~= '' then
  local left, failure = pcall(leave, line_of(mode), owner)
  if not left and not was_held then
    error(failure)
  end
  if stored then
    hands_on(not held and is_abandoned())
  end
end
return was_held and 1 or counter_after == 0 and 0 or 2
