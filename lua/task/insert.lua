-- Inserts tasks.
--
-- KEYS[1..7]  see README.md
-- ARGV[1]     the call's nonce, by which a repeated call knows what the first has inserted; - without one
-- then for each task
--   its id
--   k (keep), r (reset) or p (replace): what happens if the id is there
--   +<microseconds> after now, or @<microseconds> since 1970: when it is due
--   how often it is tried at most, 0 for ever
--   how long it waits after its first try, and at most; for how long its id is known when it is done: in milliseconds
--   its payload
--
-- Returns a text with 1 for each task that was inserted or changed, else 0
-- use: time, tasks, workers

local nonce, now = ARGV[1], server_time()

local function insert(at)
  local id, if_exists, due = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  -- One behind the other, though they are inserted together.
  due = string.sub(due, 2) + (string.sub(due, 1, 1) == '+' and now or 0) + (at - 2) / 8
  due = math.min(due, BURIED_FROM - 1)
  local old = read_task(id)
  local is_free = old and redis.call('ZSCORE', KEYS[DUE], id)
  if not old then
    local until_then = redis.call('ZSCORE', KEYS[FINISHED], id)
    if until_then and now < tonumber(until_then) then
      return '0'
    end
  elseif nonce ~= '-' and old.nonce == nonce then
    return '1'
  elseif not is_free or if_exists == 'k' then
    return '0'
  elseif if_exists == 'r' then
    old.nonce = nonce
    if tonumber(is_free) >= BURIED_FROM then
      old.attempt = 0
    end
    wait_until(id, old, due)
    return '1'
  end
  wait_until(id, {
    attempt = 0, tries = ARGV[at + 3], base = ARGV[at + 4], cap = ARGV[at + 5], remember = ARGV[at + 6], abandoned = 0,
    nonce = nonce, error = '', payload = ARGV[at + 7],
  }, due)
  return '1'
end

redis.call('ZREMRANGEBYSCORE', KEYS[FINISHED], '-inf', string.format('%d', now))
local changed = {}
for at = 2, #ARGV, 8 do
  changed[#changed + 1] = insert(at)
end
local answer = table.concat(changed)
if string.find(answer, '1', 1, true) then
  redis.call('PERSIST', KEYS[TASKS])
  call_waiters(now)
end
return answer
