-- What scripts for several names need.

-- The keys of each name: six, one name behind the other.
local function keys_of_each(all)
  local names = {}
  for at = 1, #all, 6 do
    names[#names + 1] = {unpack(all, at, at + 5)}
  end
  return names
end

-- What a script answers after a failure that pcall has caught.
local function error_of(failure)
  return type(failure) == 'table' and failure or redis.error_reply(failure)
end
