-- Time passes: every deadline of a lease or of a heartbeat is that much closer. Counters, lines and those that wait are
-- kept for a day, which isn't part of the model.
--
-- KEYS     seven for each name
-- ARGV[1]  how many milliseconds pass

local passed = tonumber(ARGV[1])

local function shorten(key)
  local left = redis.call('PTTL', key)
  if left >= 0 then
    -- Nothing left deletes it.
    redis.call('PEXPIRE', key, string.format('%d', left - passed))
  end
end

for at = 0, #KEYS - 1, 7 do
  local lock, waiters, shares = KEYS[at + 1], KEYS[at + 4], KEYS[at + 6]
  shorten(lock)
  local counter = redis.call('GET', KEYS[at + 2])
  local number, last, broken = string.match(counter or '', '^(%d+q?r?)b(%d+) (.*)$')
  if number then
    broken = string.gsub(broken, '(%d+):', function(ends)
      return string.format('%d:', ends - passed)
    end)
    redis.call('SET', KEYS[at + 2], string.format('%sb%d %s', number, last - passed, broken), 'KEEPTTL')
  end
  for _, member in ipairs(redis.call('ZRANGE', shares, '0', '-1')) do
    -- A token stands there as well, by itself.
    if string.sub(member, 1, 2) ~= '0 ' then
      redis.call('ZINCRBY', shares, -passed, member)
    end
  end
  shorten(shares)
  local all = redis.call('HGETALL', waiters)
  for field = 1, #all, 2 do
    local overdue, rest = string.match(all[field + 1], '^(%d+)( .*)$')
    redis.call('HSET', waiters, all[field], string.format('%d', overdue - passed) .. rest)
  end
end
