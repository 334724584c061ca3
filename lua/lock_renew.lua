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

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- include mode.lua
-- include held.lua
if not is_shared() or not redis.call('ZSCORE', KEYS[6], member_of(owner, mode)) then
  return 0
end
if ttl == '0' then
  return 1
end
redis.call('ZADD', KEYS[6], clock + ttl, member_of(owner, mode))
keep(last_end())
redis.call('PEXPIRE', KEYS[2], DAY)
return 1
