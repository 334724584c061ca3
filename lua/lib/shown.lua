-- What is told of a name to those who look at it. `name` is the table that name.lua describes. Of an owner only what stands
-- behind its id is told: the id proves ownership.

-- Empty for a text that is no owner, which a program left that isn't crosslock.
local function public_part(owner)
  return string.find(owner, OWNER_FORM) and string.sub(owner, ID_LENGTH + 2) or ''
end

-- Those that share the name, whose leases aren't over: {owner, how many permits, when its lease ends}, in that order.
local function sharers_of(name)
  local all, sharers = redis.call('ZRANGE', name[HOLDERS], '(' .. name[CLOCK], '+inf', 'BYSCORE', 'WITHSCORES'), {}
  for at = 1, #all, 2 do
    local count, owner = string.match(all[at], '^(%d+) (.*)$')
    if string.sub(owner, 1, 5) ~= 'kept ' then
      sharers[#sharers + 1] = {owner, tonumber(count), tonumber(all[at + 1])}
    end
  end
  return sharers
end

-- The first of those that hold the name: {what others may see, how many permits, for how many milliseconds its lease lasts
-- (-1: it has no end), its token (0: it isn't known)}. `sharers` are those that share it; without them one has it
-- exclusively.
local function shown_holders(name, sharers)
  if not sharers then
    local public = public_part(name[HELD])
    local token = public ~= '' and name[STORED] % 2 == 1 and name[STORED] or 0
    return {{public, 1, redis.call('PTTL', name[LOCK]), token}}
  end
  local shown = {}
  for at = 1, math.min(#sharers, MOST_SHOWN) do
    local owner, count, ends = unpack(sharers[at])
    local token = -(redis.call('ZSCORE', name[HOLDERS], '0 ' .. owner) or 0)
    shown[at] = {public_part(owner), count, ends - name[CLOCK], token}
  end
  return shown
end
