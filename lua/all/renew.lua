-- Makes a lease of several locks last for another ttl.
--
-- KEYS  six for each name, as in lock/renew.lua
-- ARGV  as in lock/renew.lua; several names are held exclusively, and have no value
--
-- Returns
--   1  renewed
--   0  one at least isn't the owner's, or was lost and is its own anew; nothing was changed
--   2  the same, because its lease was broken
-- use: several

local names, owner, ttl = keys_of_each(KEYS), ARGV[1], ARGV[2]

for _, keys in ipairs(names) do
  local lock, counter = unpack(redis.call('MGET', keys[LOCK], keys[COUNTER]))
  local stored = ARGV[5] and counter and tonumber(string.match(counter, LEADING_NUMBER))
  if lock ~= owner or (stored and stored > tonumber(ARGV[5])) then
    local entry = ':' .. string.sub(owner, 1, ID_LENGTH) .. ' '
    return string.find(tostring(counter), entry, 1, true) and 2 or 0
  end
end
if ttl == '0' then
  return 1
end
for _, keys in ipairs(names) do
  redis.call('PEXPIRE', keys[LOCK], ttl)
  redis.call('PEXPIRE', keys[COUNTER], DAY)
end
return 1
