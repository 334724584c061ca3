-- Fencing tokens, which README.md explains. `stored` is the number that the counter holds, `now` the server's time in
-- microseconds.

-- Whether the last owner that was let in has the lock exclusively, or had it and didn't release it.
local function is_abandoned(stored)
  return stored % 2 == 1 and stored % 8 ~= 7
end

-- The same, or that owner released it and let in nobody: a lock that stays taken for a time leaves such a number.
local function was_exclusive(stored)
  return stored % 4 == 2 or is_abandoned(stored)
end

-- The next token: above every number that was used, and no smaller than the server's time, so that it increases when
-- the counter was lost. `shares`: it is for a reader or a holder of permits.
local function next_token(stored, now, shares)
  local floor = math.max(stored + (is_abandoned(stored) and 2 * HAND_OVERS + 1 or 1), now)
  if stored % 2 == 1 then
    return floor + ((shares and 7 or 3) - floor) % 8
  end
  return floor + ((shares and 0 or 1) - floor) % 4
end
