-- Included where `stored` is what the counter holds, and `now` the server's time in microseconds. Gives `odd`,
-- whether the counter is, and the next `token`: odd, above every number that was used, and no smaller than the time,
-- so that it increases when the counter was lost. Its second bit says that the holder before never released, so that
-- a repeated acquire says it again. One lease uses up to 1024 tokens more inside its process, each the next odd
-- number.
--
-- A number is exact up to 2^53, and as an argument and as an answer it keeps all digits.

local odd = stored % 2 == 1
local floor = math.max(stored + (odd and 2 * 1024 + 1 or 1), now)
local token = floor + ((odd and 3 or 1) - floor) % 4
