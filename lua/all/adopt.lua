-- Makes the lease of several locks that another owner has the owner's.
--
-- KEYS  six for each name, as in lock/adopt.lua
-- ARGV  as in lock/adopt.lua; several names are held exclusively, and have no value
--
-- Returns
--   token  the owner has all locks; the token is above all that were used
--   0      one at least isn't the other owner's; nothing was changed
--   error  as there; nothing was changed
--
-- Repeated by its owner it gives a later token, and a full ttl.
-- use: time, several, name, token, mode, holders, grant

local owner, ttl, from, counter_after = ARGV[OWNER], ARGV[TTL], ARGV[4], tonumber(ARGV[5])
local names, last, now = {}, counter_after, server_time()
for at, keys in ipairs(keys_of_each(KEYS)) do
  local name, failure = read_name(keys, redis.pcall('GET', keys[COUNTER]), now)
  if failure then
    return failure
  end
  local lock = redis.call('GET', keys[LOCK])
  if lock ~= owner and (lock ~= from or name[STORED] >= counter_after) then
    return 0
  end
  names[at], last = name, math.max(last, name[STORED])
end
-- After an even number: nobody has abandoned what is passed on.
local token = next_token(last + last % 2, now)
for _, name in ipairs(names) do
  redis.call('SET', name[LOCK], owner, 'PX', ttl)
  name[STORED] = token
  write_counter(name)
end
return token
