-- Included behind mode.lua where it matters what is held. `now` is the server's time in microseconds, `lock` what GET or
-- MGET says of KEYS[1].
--
-- KEYS[1]  the lock: a string, which expires with its last lease: the exclusive owner; READERS; PERMITS and how many
--          are out, those included whose lease is over and that nobody has counted back yet; or KEPT: nobody has it,
--          and nobody is let in until it expires
-- KEYS[6]  who shares the lock: a sorted set of "<count> <owner>", by when each lease ends, in milliseconds

local clock = math.floor(now / 1000)

-- Nil, READERS, PERMITS, KEPT, or an exclusive owner; and how many permits are out.
local held, used = lock or nil, 0

local function is_shared()
  return held == READERS or held == PERMITS
end

local out = held and string.match(held, '^crosslock:permits (%d+)$')
if out then
  held, used = PERMITS, tonumber(out)
end
local function mark()
  return held == PERMITS and string.format('%s %d', PERMITS, used) or held
end

if is_shared() then
  -- Leases that are over are no more, and their permits are counted back: that costs as much as there are of them,
  -- however many are out.
  local over = redis.call('ZRANGE', KEYS[6], '-inf', clock, 'BYSCORE')
  if #over > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', clock)
  end
  if redis.call('EXISTS', KEYS[6]) == 0 then
    held, used = nil, 0
  elseif #over > 0 and held == PERMITS then
    for _, member in ipairs(over) do
      used = used - string.match(member, '^%d+')
    end
    redis.call('SET', KEYS[1], mark(), 'KEEPTTL')
  end
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
    redis.call('SET', KEYS[1], mark(), 'PXAT', last)
  else
    redis.call('DEL', KEYS[1])
  end
end
