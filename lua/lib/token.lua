-- Included where fencing tokens are given out, behind `stored`, the number that the counter holds, and `now`, the
-- server's time in microseconds. Gives the next token after that: above every number that was used, and no smaller
-- than the server's time, so that it increases when the counter was lost.
--
--   token % 4 == 1  an exclusive holder
--   token % 8 == 3  the same, and the exclusive holder before it never released, which an odd counter tells: so a repeated
--                   acquire says it again
--   token % 4 == 0  one that shares: what those leave behind is nobody's concern, so the counter stays even
--   token % 8 == 7  the same, and the exclusive holder before never released: the counter stays odd, for the next one
--
-- One exclusive lease uses up to 1024 tokens more inside its process, each the next odd number. A release writes an even
-- number, and an odd one, but none of those with 7, when a panic ended the lease. A number is exact up to 2^53; '%d'
-- writes all of its digits.

-- Whether the last that was let in is an exclusive holder, which didn't release.
local function is_abandoned()
  return stored % 2 == 1 and stored % 8 ~= 7
end

local function next_token(shares)
  local floor = math.max(stored + (is_abandoned() and 2 * 1024 + 1 or 1), now)
  if stored % 2 == 1 then
    return floor + ((shares and 7 or 3) - floor) % 8
  end
  return floor + ((shares and 0 or 1) - floor) % 4
end
