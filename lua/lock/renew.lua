-- Makes a lease last for another ttl. A lock that is gone is not taken again.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens, which must outlive the lease
-- KEYS[6]  who shares the lock, see held.lua
-- KEYS[7]  the value that the lock protects; without it the value stays as it is
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds; 0: only look
-- ARGV[3]  the mode, see mode.lua
-- ARGV[4]  the new value, a string: it is written if the lock is the owner's
--
-- Returns
--   1  renewed
--   0  the lock isn't the owner's; nothing was changed

local DAY = '86400000'
local owner, ttl, mode = ARGV[1], ARGV[2], ARGV[3]

if mode == 'x' or mode == 'w' then
  if redis.call('GET', KEYS[1]) ~= owner then
    return 0
  end
  if ttl == '0' then
    return 1
  end
  redis.call('PEXPIRE', KEYS[1], ttl)
  if KEYS[7] then
    redis.call('SET', KEYS[7], ARGV[4])
  end
  redis.call('PEXPIRE', KEYS[2], DAY)
  return 1
end

-- How many share it doesn't matter, so nobody is counted.
local time = redis.call('TIME')
local clock = math.floor((time[1] * 1000000 + time[2]) / 1000)
-- include mode.lua
local lock = redis.call('GET', KEYS[1])
local ends = lock and string.find(lock, '^crosslock:[rp]')
  and redis.call('ZSCORE', KEYS[6], member_of(owner, mode))
if not ends or tonumber(ends) <= clock then
  return 0
end
if ttl == '0' then
  return 1
end
-- First what needs no memory: a server without any refuses ZADD, but not behind it.
redis.call('PEXPIRE', KEYS[2], DAY)
redis.call('ZADD', KEYS[6], clock + ttl, member_of(owner, mode))
local last = redis.call('ZRANGE', KEYS[6], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEYS[6], last)
redis.call('PEXPIREAT', KEYS[1], last)
return 1
