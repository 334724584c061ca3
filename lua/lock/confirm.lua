-- Reads a value, and stores it again as it is: so WAIT behind this script tells whether replicas have it, which another
-- connection may have stored.
--
-- KEYS[1]  the value
--
-- Returns the value; nil when there is none

local value = redis.call('GET', KEYS[1])
if value then
  redis.call('SET', KEYS[1], value)
end
return value
