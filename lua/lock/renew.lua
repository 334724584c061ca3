-- Makes a lease last for another ttl. A lock that is gone is not taken again.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value; without it the value stays as it is
-- KEYS[8]     the same, in a cluster, see lib/store.lua
-- ARGV[1]     the owner
-- ARGV[2]     the ttl in milliseconds; 0: only look
-- ARGV[3]     the mode, see lib/mode.lua
-- ARGV[4]     the new value, a string: it is written if the lock is the owner's; without KEYS[7] it isn't looked at
-- ARGV[5]     the token that the owner was granted; without it, it isn't compared
--
-- Returns
--   1  renewed
--   0  the lock isn't the owner's, or was lost and is its own anew; nothing was changed
--   2  the same, because its lease was broken

local owner, ttl, mode = ARGV[1], ARGV[2], ARGV[3]

if mode == 'x' or mode == 'w' then
  local lock, counter = unpack(redis.call('MGET', KEYS[LOCK], KEYS[COUNTER]))
  -- By a late copy of its request the owner may have the lock anew, and others may have had it since. A counter that was lost
  -- tells nothing.
  local stored = ARGV[5] and counter and tonumber(string.match(counter, LEADING_NUMBER))
  if lock ~= owner or (stored and stored > tonumber(ARGV[5])) then
    local entry = ':' .. string.sub(owner, 1, ID_LENGTH) .. ' '
    return string.find(tostring(counter), entry, 1, true) and 2 or 0
  end
  if ttl == '0' then
    return 1
  end
  redis.call('PEXPIRE', KEYS[LOCK], ttl)
  if KEYS[VALUE] then
    redis.call('SET', KEYS[VALUE], ARGV[4])
    redis.pcall(KEYS[CHANNEL] and 'SPUBLISH' or 'PUBLISH', KEYS[VALUE], '')
  end
  -- The counter must outlive the lease.
  redis.call('PEXPIRE', KEYS[COUNTER], DAY)
  return 1
end

-- use: time, mode

-- How many share the lock doesn't matter, so nobody is counted.
local clock = math.floor(server_time() / 1000)
local lock, member = redis.call('GET', KEYS[LOCK]), member_of(owner, mode)
local ends = lock and string.find(lock, SHARED) and redis.call('ZSCORE', KEYS[HOLDERS], member)
-- As above. The owner's own token stands beside its lease.
local token = ends and ARGV[5] and redis.call('ZSCORE', KEYS[HOLDERS], '0 ' .. owner)
if not ends or tonumber(ends) <= clock or (token and -token ~= tonumber(ARGV[5])) then
  local entry = ':' .. string.sub(owner, 1, ID_LENGTH) .. ' '
  return string.find(tostring(redis.pcall('GET', KEYS[COUNTER])), entry, 1, true) and 2 or 0
end
if ttl == '0' then
  return 1
end
-- First what needs no memory: a server without any refuses ZADD, but not behind it.
redis.call('PEXPIRE', KEYS[COUNTER], DAY)
redis.call('ZADD', KEYS[HOLDERS], clock + ttl, member)
local last = redis.call('ZRANGE', KEYS[HOLDERS], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEYS[HOLDERS], last)
redis.call('PEXPIREAT', KEYS[LOCK], last)
return 1
