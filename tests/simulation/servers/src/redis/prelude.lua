-- What a script has besides Lua, as Redis gives it. It is called once, and gives what runs a script.
local run_command, sha1hex = ...
local rawset, pcall_of_lua, xpcall, type, tostring, error, globals = rawset, pcall, xpcall, type, tostring, error, _G

local function coded(text)
  local code, rest = string.match(text, '^%-(%S+) (.*)$')
  return code and code .. ' ' .. rest or 'ERR ' .. (string.match(text, '^%-(.*)$') or text)
end

redis = {
  call = function(...)
    local answer, has_failed = run_command(...)
    if has_failed then
      error(answer)
    end
    return answer
  end,
  pcall = function(...)
    local answer = run_command(...)
    return answer
  end,
  error_reply = function(text)
    if type(text) ~= 'string' then
      error({err = 'ERR wrong number or type of arguments'})
    end
    return {err = coded(string.sub(text, 1, 1) == '-' and text or '-' .. text)}
  end,
  sha1hex = sha1hex,
}
-- What `redis.call` raises is a table, of which `pcall` gives the text.
local function texts(ok, failure, ...)
  if not ok and type(failure) == 'table' and type(failure.err) == 'string' then
    failure = failure.err
  end
  return ok, failure, ...
end

function pcall(...)
  return texts(pcall_of_lua(...))
end

-- What differs from run to run.
math.random, math.randomseed, print, dofile, loadfile = nil, nil, nil, nil, nil

setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function()
    error('Attempt to modify a readonly table', 2)
  end,
})

local function describe(failure)
  if type(failure) ~= 'table' then
    failure = {err = 'ERR ' .. tostring(failure)}
  end
  return failure
end

return function(script, keys, arguments)
  rawset(globals, 'KEYS', keys)
  rawset(globals, 'ARGV', arguments)
  return xpcall(script, describe)
end
