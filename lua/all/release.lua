-- Ends a lease of several locks, and gives each to the next. An owner that waits leaves the queues.
--
-- KEYS  six for each name, as in lock/release.lua
-- ARGV  as in lock/release.lua; several names are held exclusively, and have no value
--
-- Returns
--   1  all were released, now or by the same command before
--   0  one at least wasn't the owner's; the others were released
--   2  the same, and each that wasn't may have been released by the same command before
--   3  the lease of one at least was broken; the others were released
-- use: several

local owner, counter_after, keep_for = ARGV[1], tonumber(ARGV[2]), ARGV[5]

-- The usual release, as in lock/release.lua. Gives 1; or false, and what the keys of the lock and the counter say.
local function release_unqueued(keys, owner, counter_after, keep_for)
  local lock, counter = unpack(redis.call('MGET', keys[LOCK], keys[COUNTER]))
  local stored = tonumber(counter)
  if lock ~= owner or not stored or stored >= counter_after or keep_for then
    return false, lock, counter
  end
  redis.call('DEL', keys[LOCK])
  redis.call('SET', keys[COUNTER], string.format('%d', counter_after), 'KEEPTTL')
  return 1
end

local released, failure, others = 1, nil, {}
for _, keys in ipairs(keys_of_each(KEYS)) do
  local ok, answer, lock, counter = pcall(release_unqueued, keys, owner, counter_after, keep_for)
  if not ok then
    failure = error_of(answer)
  elseif not answer then
    others[#others + 1] = {keys, lock, counter}
  end
end
if #others == 0 then
  return failure or released
end

-- use: time, name, release

local function release(keys, lock, counter, now, owner, counter_after, keep_for)
  return release_exclusive(read_name(keys, counter, now), lock, owner, counter_after, nil, keep_for)
end

local now = server_time()
for _, other in ipairs(others) do
  local keys, lock, counter = unpack(other)
  local ok, answer = pcall(release, keys, lock, counter, now, owner, counter_after, keep_for)
  if not ok then
    failure = error_of(answer)
  elseif answer == 3 or (answer == 0 and released ~= 3) or released == 1 then
    released = answer
  end
end
return failure or released
