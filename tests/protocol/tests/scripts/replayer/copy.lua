-- Replaces keys by others, or by nothing, with what they hold and for how long.
--
-- KEYS  first those that are replaced, then as many others: what they become

local half = #KEYS / 2
for at = 1, half do
  redis.call('DEL', KEYS[at])
  redis.call('COPY', KEYS[half + at], KEYS[at])
end
