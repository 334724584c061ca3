-- What there is of each name: first the server's clock in microseconds, then eight lines for each name, one for each
-- key in the order of the scripts, and one with how long each key lasts. Keys that aren't there are empty.
--
-- KEYS  seven for each name

local function text(command, ...)
  local answer = redis.call(command, ...)
  return type(answer) == 'table' and table.concat(answer, '|') or answer or ''
end

local time = redis.call('TIME')
local lines = {string.format('%d', time[1] * 1000000 + time[2])}
for at = 0, #KEYS - 1, 7 do
  table.insert(lines, text('GET', KEYS[at + 1]))
  table.insert(lines, text('GET', KEYS[at + 2]))
  table.insert(lines, text('LRANGE', KEYS[at + 3], '0', '-1'))
  table.insert(lines, text('HGETALL', KEYS[at + 4]))
  table.insert(lines, text('LRANGE', KEYS[at + 5], '0', '-1'))
  table.insert(lines, text('ZRANGE', KEYS[at + 6], '0', '-1', 'WITHSCORES'))
  table.insert(lines, text('GET', KEYS[at + 7]))
  local lasts = {}
  for key = 1, 7 do
    lasts[key] = redis.call('PTTL', KEYS[at + key])
  end
  table.insert(lines, table.concat(lasts, ' '))
end
return table.concat(lines, '\n')
