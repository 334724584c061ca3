-- Included where it matters how a lock is to be held. A mode is x (exclusive), w (exclusive, and before those that wait
-- to read), r (read) or <count>/<permits>.

-- What the lock's key says when it doesn't name an exclusive owner. Behind PERMITS stands how many are out.
local READERS, PERMITS, KEPT = 'crosslock:readers', 'crosslock:permits', 'crosslock:kept'

local function is_exclusive(mode)
  return mode == 'x' or mode == 'w'
end

-- How many permits an owner takes; 1 for one that reads.
local function count_of(mode)
  return tonumber(string.match(mode, '^%d+') or 1)
end

-- What an owner is among those that share.
local function member_of(owner, mode)
  return count_of(mode) .. ' ' .. owner
end
