-- What there is of each name: first the server's clock in microseconds, then eight lines for each name, see words.rs. Times are
-- in ticks from now on. What no model has, such as a key that lasts too long, is told as well.
--
-- KEYS     seven for each name
-- ARGV[1]  how many milliseconds a tick has

local tick, slack, day = tonumber(ARGV[1]), 300000, 86400000
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local clock = math.floor(micros / 1000)

-- Rounded up, because some time has passed since it was as long as that.
local function ticks(left)
  local ticks = math.max(0, math.ceil(left / tick))
  -- Half a ttl may end between two.
  local passed = (ticks * tick - left) % (tick / 2)
  return left > 0 and passed >= slack and left .. ' ms' or ticks
end

local function lasting(text, key)
  local left = redis.call('PTTL', key)
  return (left == -2 or (left > 0 and left <= day)) and text or text .. ' lasts ' .. left
end

local function lock_of(key)
  local says, left = redis.call('GET', key), redis.call('PTTL', key)
  if not says then
    return ''
  end
  says = string.gsub(says, '^(crosslock:permits %d+)/%d*$', '%1')
  return says .. ' ' .. (left == -1 and 'endless' or ticks(left))
end

local function broken_of(counter)
  local last, entries = string.match(counter, 'b(%d+) (.*)$')
  local all = {last and ticks(last - clock)}
  for ends, id in string.gmatch(entries or '', '(%d+):(%S+) ') do
    table.insert(all, ticks(ends - clock) .. ':' .. id)
  end
  return table.concat(all, '|')
end

local function waiters_of(key)
  local fields, all = redis.call('HGETALL', key), {}
  for at = 1, #fields, 2 do
    local overdue, ttl, mode, inbox = string.match(fields[at + 1], '^(%d+) (%d+) (%S+) (%S*)$')
    local left, lasts = overdue - clock, ticks(tonumber(ttl))
    left = left > 0 and ticks(left) or 0 - math.min(math.floor(-left / tick), lasts)
    table.insert(all, table.concat({fields[at], left, lasts, mode, inbox}, ' '))
  end
  return table.concat(all, '|')
end

local function shares_of(key)
  local members, tokens, all = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES'), {}, {}
  for at = 1, #members, 2 do
    local count, owner = string.match(members[at], '^(%d+) (.*)$')
    if count == '0' then
      tokens[owner] = string.gsub(members[at + 1], '^-', '')
    end
  end
  for at = 1, #members, 2 do
    local count, owner = string.match(members[at], '^(%d+) (.*)$')
    if count ~= '0' then
      local token = string.match(owner, '^kept ') and '0' or tokens[owner] or 'none'
      table.insert(all, table.concat({members[at], ticks(members[at + 1] - clock), token}, ' '))
    end
  end
  if #members > 0 then
    table.insert(all, 'lasts ' .. ticks(redis.call('PTTL', key)))
  end
  return table.concat(all, '|')
end

local lines = {string.format('%d', micros)}
for at = 0, #KEYS - 1, 7 do
  local function queue_of(key)
    return lasting(table.concat(redis.call('LRANGE', key, '0', '-1'), '|'), key)
  end
  local counter = redis.call('GET', KEYS[at + 2]) or ''
  local value, left = redis.call('GET', KEYS[at + 7]) or '', redis.call('PTTL', KEYS[at + 7])
  table.insert(lines, lock_of(KEYS[at + 1]))
  table.insert(lines, lasting(string.match(counter, '^[^b]*'), KEYS[at + 2]))
  table.insert(lines, broken_of(counter))
  table.insert(lines, queue_of(KEYS[at + 3]))
  table.insert(lines, queue_of(KEYS[at + 5]))
  table.insert(lines, lasting(waiters_of(KEYS[at + 4]), KEYS[at + 4]))
  table.insert(lines, shares_of(KEYS[at + 6]))
  table.insert(lines, left < 0 and value or value .. ' lasts ' .. left)
end
return table.concat(lines, '\n')
