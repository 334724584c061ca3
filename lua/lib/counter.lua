-- Included behind `counter`, what GET or MGET says of KEYS[2]. Splits it into the number that it holds and the letters
-- behind that, see line.lua: they are not known of a counter that was lost. `stored` is nil when it is no counter.
local LARGEST = 2 ^ 53 - 2 ^ 12 -- the next tokens are still exact
local stored, lines
if counter then
  stored, lines = string.match(counter, '^(%d+)(q?r?)$')
  stored = tonumber(stored)
  stored = stored and stored < LARGEST and stored or nil
else
  stored = 0
  lines = redis.call('EXISTS', KEYS[3], KEYS[5]) > 0 and 'qr' or ''
end
