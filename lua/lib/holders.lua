-- Who holds a name. `name` is the table that name.lua describes.

local function is_shared(name)
  return name[HELD] == MARK_READERS or name[HELD] == MARK_PERMITS
end

-- What the lock's key says.
local function mark_of(name)
  return name[HELD] == MARK_PERMITS and string.format('%s %d%s', MARK_PERMITS, name[USED], name[OF]) or name[HELD]
end

-- Leases that are over are no more, and their permits are counted back. That costs as much as there are of them,
-- however many permits are out.
local function drop_ended(name)
  local ended = redis.call('ZRANGE', name[HOLDERS], '0', name[CLOCK], 'BYSCORE')
  if #ended > 0 then
    redis.call('ZREMRANGEBYSCORE', name[HOLDERS], '0', name[CLOCK])
    for _, member in ipairs(ended) do
      redis.call('ZREM', name[HOLDERS], (string.gsub(member, '^%d+', '0')))
    end
  end
  if redis.call('EXISTS', name[HOLDERS]) == 0 then
    name[HELD], name[USED] = nil, 0
  elseif #ended > 0 and name[HELD] == MARK_PERMITS then
    for _, member in ipairs(ended) do
      name[USED] = name[USED] - string.match(member, '^%d+')
    end
    redis.call('SET', name[LOCK], mark_of(name), 'KEEPTTL')
  end
end

-- `lock` is what the lock's key says, false where it isn't there.
local function read_holders(name, lock)
  name[CLOCK] = math.floor(name[NOW] / 1000)
  name[HELD], name[USED] = lock or nil, 0
  local used, of
  if lock then
    used, of = string.match(lock, PERMITS_OUT)
  end
  if used then
    name[HELD], name[USED], name[OF] = MARK_PERMITS, tonumber(used), of
  end
  if is_shared(name) then
    drop_ended(name)
  end
end

-- Whether an owner can be let in beside those that hold the name now.
local function fits(name, mode)
  if not name[HELD] then
    return true
  end
  if name[HELD] ~= MARK_PERMITS then
    return name[HELD] == MARK_READERS and mode == 'r'
  end
  local count, permits = string.match(mode, '^(%d+)/(%d+)$')
  return count and name[USED] + count <= tonumber(permits)
end

-- When the last of the leases that share the name ends, in milliseconds; 0 without any.
local function last_end(name)
  return tonumber(redis.call('ZRANGE', name[HOLDERS], -1, -1, 'WITHSCORES')[2] or 0)
end

-- Makes the lock last until then: until the same moment, whatever time has passed since the script began.
local function keep_until(name, last)
  if last > 0 then
    last = string.format('%d', last)
    redis.call('PEXPIREAT', name[HOLDERS], last)
    redis.call('SET', name[LOCK], mark_of(name), 'PXAT', last)
  else
    redis.call('DEL', name[LOCK])
  end
end
