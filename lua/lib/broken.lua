-- Owners whose leases were broken. Until those would have ended, a late copy of what such an owner asked for mustn't take
-- the lock anew: it may not know yet that it has lost it. So the counter names them, behind its letters: `b<last> `, and
-- for each owner `<until>:<id> `, with the times in milliseconds. `name` is the table that name.lua describes.

-- How an owner is named there. Texts that begin alike are no owners, but have to be told apart.
local function broken_entry(owner)
  return ':' .. string.sub(owner, 1, ID_LENGTH) .. ' '
end

local function is_broken(name, owner)
  return name[BROKEN] and string.find(name[BROKEN], broken_entry(owner), 1, true)
end
