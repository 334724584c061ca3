-- Included behind mode.lua where it matters what is held. `now` is the server's time in microseconds.
--
-- KEYS[1]  the lock: a string, which expires with its last lease: the exclusive owner, or READERS, or PERMITS
-- KEYS[6]  who shares the lock: a sorted set of "<count> <owner>", by when each lease ends, in milliseconds

local clock = math.floor(now / 1000)

-- Nil, the exclusive owner, READERS or PERMITS; and how many permits are out. Leases that are over are no more.
local held, used = redis.call('GET', KEYS[1]) or nil, 0
if held == READERS or held == PERMITS then
  redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', clock)
  for _, member in ipairs(redis.call('ZRANGE', KEYS[6], 0, held == READERS and 0 or -1)) do
    used = used + string.match(member, '^%d+')
  end
  held = used > 0 and held or nil
end

local function is_shared()
  return held == READERS or held == PERMITS
end

local function fits(mode)
  if not held then
    return true
  end
  if held ~= PERMITS then
    return held == READERS and mode == 'r'
  end
  local count, permits = string.match(mode, '^(%d+)/(%d+)$')
  return count and used + count <= tonumber(permits)
end

-- When the last lease of those that share is over, in milliseconds; 0 when there is none.
local function last_end()
  return tonumber(redis.call('ZRANGE', KEYS[6], -1, -1, 'WITHSCORES')[2] or 0)
end

-- Makes the lock last as long as they do: to the same moment, whatever time has passed since this script began.
local function keep(last)
  if last > 0 then
    redis.call('PEXPIREAT', KEYS[6], last)
    redis.call('SET', KEYS[1], held, 'PXAT', last)
  else
    redis.call('DEL', KEYS[1])
  end
end
