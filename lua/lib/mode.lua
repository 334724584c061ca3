-- How an owner wants to hold a lock: x (exclusively), w (the same, and before those that wait to read), r (to read) or
-- <count>/<permits>.

local function is_exclusive(mode)
  return mode == 'x' or mode == 'w'
end

-- How many permits an owner takes; 1 for a reader.
local function count_of(mode)
  return tonumber(string.match(mode, '^%d+') or 1)
end

-- What stands for an owner among the holders, by the end of its lease. Beside it stands `0 <owner>`, by its token below 0:
-- apart from all ends, and written and removed by the same commands.
local function member_of(owner, mode)
  return count_of(mode) .. ' ' .. owner
end
