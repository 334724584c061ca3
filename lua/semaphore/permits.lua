-- Says how many permits of a semaphore are out.
--
-- KEYS[1]  the lock
-- KEYS[6]  who shares the lock, see held.lua
--
-- Returns
--   how many; -1 when the name is held otherwise, so that none is free

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- include mode.lua
local lock = redis.call('GET', KEYS[1])
-- include held.lua
return held and held ~= PERMITS and -1 or used
