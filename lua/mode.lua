-- Included where it matters how a lock is to be held. A mode is x (exclusive), w (exclusive, and before those that wait
-- to read), r (read) or <count>/<permits>.

local READERS, PERMITS = 'crosslock:readers', 'crosslock:permits'

local function is_exclusive(mode)
  return mode == 'x' or mode == 'w'
end

-- What an owner is among those that share.
local function member_of(owner, mode)
  return (string.match(mode, '^%d+') or '1') .. ' ' .. owner
end
