-- Included where `all` is the keys of several names, six for each: calls a function with those of each name.

local function each(call)
  for at = 1, #all, 6 do
    call({unpack(all, at, at + 5)})
  end
end
