-- Makes a lease of several locks last for another ttl.
--
-- KEYS  six for each name, as in lock_renew.lua
-- ARGV  as in lock_renew.lua, without a value
--
-- Returns
--   1  renewed
--   0  one at least isn't the owner's; nothing was changed

local all = KEYS
local owner, ttl, mode = ARGV[1], ARGV[2], ARGV[3]

local function renew(KEYS, ARGV)
-- include lock_renew.lua
end

-- include each.lua

local kept = 1
each(function(keys)
  kept = math.min(kept, renew(keys, {owner, '0', mode}))
end)
if kept == 1 then
  each(function(keys)
    renew(keys, {owner, ttl, mode})
  end)
end
return kept
