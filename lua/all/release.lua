-- Ends a lease of several locks, and gives each to the first in its line. An owner that waits leaves the lines.
--
-- KEYS  six for each name, as in lock_release.lua
-- ARGV  as in lock_release.lua; there is no value
--
-- Returns
--   1  all were released, now or by the same command before
--   0  one at least wasn't the owner's; the others were released
--   2  the same, and each that wasn't may have been released by the same command before

local all, arguments = KEYS, ARGV

local function release(KEYS, ARGV)
-- include lock_release.lua
end

-- include each.lua

local released, failure = 1, nil
each(function(keys)
  local done, answer = pcall(release, keys, arguments)
  if not done then
    failure = type(answer) == 'table' and answer or redis.error_reply(answer)
  elseif answer == 0 or released == 1 then
    released = answer
  end
end)
return failure or released
