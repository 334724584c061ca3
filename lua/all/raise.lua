-- Raises the counters of several locks to the token of a lease that spans more than these, and makes it last for another ttl.
--
-- KEYS  six for each name, as in lock/renew.lua
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds
-- ARGV[3]  the token
--
-- Returns
--   1               raised
--   0               one at least isn't the owner's, or was lost and is its own anew; nothing was changed
--   2               the same, because its lease was broken
--   error CONFLICT  as in lock/acquire.lua; nothing was changed
-- use: time, several, name, grant

local owner, ttl, token = ARGV[1], ARGV[2], tonumber(ARGV[3])
local names, now = {}, server_time()
for at, keys in ipairs(keys_of_each(KEYS)) do
  local counter = redis.pcall('GET', keys[COUNTER])
  if redis.call('GET', keys[LOCK]) ~= owner then
    local entry = ':' .. string.sub(owner, 1, ID_LENGTH) .. ' '
    return string.find(tostring(counter), entry, 1, true) and 2 or 0
  end
  local name, failure = read_name(keys, counter, now)
  if failure then
    return failure
  elseif name[STORED] > token then
    -- By a late copy of its request, and others may have had it since, with tokens above this one.
    return 0
  end
  names[at] = name
end
for _, name in ipairs(names) do
  -- What needs memory comes first: a counter that was raised for nothing harms nobody.
  name[STORED] = counted(token, name[STORED])
  write_counter(name)
  redis.call('PEXPIRE', name[LOCK], ttl)
end
return 1
