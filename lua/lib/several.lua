-- What scripts for several names need.

-- The keys of each name: six, one name behind the other.
local function keys_of_each(all)
  local names = {}
  for at = 1, #all, 6 do
    names[#names + 1] = {unpack(all, at, at + 5)}
  end
  return names
end

-- What the counter of one name becomes if a lease of several has that token, and the name alone gave `its`. The token
-- says whether one of the names was abandoned. A counter says it of its own name, and still does if all is given back.
local function counted(token, its)
  return token % 4 == 3 and its % 4 == 1 and token - 2 or token
end

-- What a script answers after a failure that pcall has caught.
local function error_of(failure)
  return type(failure) == 'table' and failure or redis.error_reply(failure)
end
