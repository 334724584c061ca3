-- Ends a lease, and lets in who comes next. An owner that waits leaves the line.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held exclusively, even after a clean release
-- KEYS[3]  the line, see line.lua
-- KEYS[4]  who waits, see line.lua
-- KEYS[5]  the line of those that wait to read, see line.lua
-- KEYS[6]  who shares the lock, see held.lua
-- KEYS[7]  the value that the lock protects; without it the value stays as it is
-- ARGV[1]  the owner
-- ARGV[2]  what the counter becomes when the lock was held exclusively: the last token that was used, plus 1; 0 when
--          the owner doesn't know whether it was granted one
-- ARGV[3]  the mode, see mode.lua
-- ARGV[4]  the new value, a string: it is written if the lock is the owner's
--
-- Returns
--   1  released, now or (if it was held exclusively) by the same command before
--   0  the lock isn't the owner's; nothing was changed. But if ARGV[2] is 0 the owner has left the line, and those
--      that could be let in have been
--   2  the same, and the same command may have released it before: it was shared, or others were let in since
--
-- A write that frees something comes before those that need memory: a server without any refuses these, but not
-- after such a one.

local DAY = '86400000' -- milliseconds
local owner, counter, mode = ARGV[1], ARGV[2], ARGV[3]
-- include mode.lua
local exclusive = is_exclusive(mode)
local others = redis.call('EXISTS', KEYS[3], KEYS[5]) > 0

-- What became of an exclusive lease that is no more: a counter below that of its release, or none, knows of no release.
local function ended()
  local counted = tonumber(redis.call('GET', KEYS[2]) or 0)
  local expected = tonumber(counter)
  return counted == expected and 1 or counted and counted > expected and 2 or 0
end

if exclusive and not others and counter ~= '0' then
  if redis.call('GET', KEYS[1]) ~= owner then
    return ended()
  end
  -- The counter lives for longer than the lease that it was last counted or renewed for, so it has its ttl.
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[2], counter, 'XX', 'KEEPTTL')
  if KEYS[7] then
    redis.call('SET', KEYS[7], ARGV[4])
  end
  return 1
end

local was_held = false
if not exclusive then
  local mark = redis.call('GET', KEYS[1])
  local shared = mark == READERS or mark == PERMITS
  was_held = shared and redis.call('ZREM', KEYS[6], member_of(owner, mode)) == 1
  if was_held and not others and redis.call('EXISTS', KEYS[6]) == 0 then
    redis.call('DEL', KEYS[1])
    return 1
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local counted = redis.pcall('GET', KEYS[2])
local stored = type(counted) ~= 'table' and tonumber(counted or 0)
-- include token.lua
-- include held.lua
-- include line.lua

if exclusive then
  was_held = held == owner
end
if counter == '0' then
  local left, failure = pcall(leave, line_of(mode), owner)
  if not left and not was_held then
    error(failure)
  end
  -- What was never counted needs no counter. An odd number whose second bit is set says that the lock was found
  -- abandoned: nobody was told, so it stays for the next holder.
  counter = was_held and exclusive and stored and stored % 4 == 1 and string.format('%.0f', stored + 1)
elseif not was_held then
  return exclusive and ended() or 2
end

if was_held and exclusive then
  redis.call('DEL', KEYS[1])
  held = nil
  if KEYS[7] then
    redis.call('SET', KEYS[7], ARGV[4])
  end
  if counter then
    redis.call('SET', KEYS[2], counter, 'PX', DAY)
    stored = tonumber(counter)
  end
elseif was_held then
  keep(last_end())
end
if others and stored then
  -- A line that can't be read hinders no release: those in it find that the lock is free.
  local after_exclusive = was_held and exclusive or not held and is_abandoned(stored)
  pcall(hand_on, nil, after_exclusive)
end
return was_held and 1 or 0
