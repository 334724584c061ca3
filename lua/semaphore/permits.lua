-- Says how many permits of a semaphore are out. Leases that are over are dropped.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
--
-- Returns
--   how many; -1 when the name is held otherwise, so that none is free
-- use: time, holders

local name = {}
name[LOCK], name[HOLDERS], name[NOW] = KEYS[LOCK], KEYS[HOLDERS], server_time()
read_holders(name, redis.call('GET', KEYS[LOCK]))
return name[HELD] and name[HELD] ~= MARK_PERMITS and -1 or name[USED]
