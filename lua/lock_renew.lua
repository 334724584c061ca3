-- Makes a lease last for another ttl. A lock that is gone is not taken again.
--
-- KEYS[1]  the lock
-- KEYS[2]  the counter of fencing tokens, which must outlive the lease
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds
--
-- Returns
--   1  renewed
--   0  the lock isn't the owner's; nothing was changed

local DAY = '86400000'

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], DAY)
return 1
