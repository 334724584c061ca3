-- Shows tasks. Changes nothing.
--
-- KEYS[1..7]  see README.md
-- ARGV[1]     get; counts; or a state: d (delayed), r (ready), x (running), b (buried)
-- ARGV[2]     an id; or how many tasks are shown at most
--
-- Returns
--   {task, ...}                          as `src/base/task.rs` reads them
--   {delayed, ready, running, buried}    how many there are
-- use: time, tasks

local what, now = ARGV[1], server_time()
local text = string.format('%d', now)

local function state_of(id)
  local at = tonumber(redis.call('ZSCORE', KEYS[DUE], id) or -1)
  return at < 0 and 'x' or at >= BURIED_FROM and 'b' or at <= now and 'r' or 'd'
end

if what == 'counts' then
  local ready = redis.call('ZCOUNT', KEYS[DUE], '-inf', text)
  local buried = redis.call('ZCOUNT', KEYS[DUE], BURIED_FROM, '+inf')
  return {redis.call('ZCARD', KEYS[DUE]) - ready - buried, ready, redis.call('ZCARD', KEYS[ENDS]), buried}
end
local ids = {}
if what == 'get' then
  ids = {ARGV[2]}
elseif what == 'x' then
  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[ENDS], '-inf', '+inf', 'LIMIT', '0', ARGV[2])) do
    local _, _, id = string.match(redis.call('HGET', KEYS[WORKERS], owner) or '', HAS_TASK)
    ids[#ids + 1] = id
  end
else
  local from, to = '(' .. text, string.format('(%d', BURIED_FROM)
  if what == 'r' then
    from, to = '-inf', text
  elseif what == 'b' then
    from, to = BURIED_FROM, '+inf'
  end
  ids = redis.call('ZRANGEBYSCORE', KEYS[DUE], from, to, 'LIMIT', '0', ARGV[2])
end
local shown = {}
for _, id in ipairs(ids) do
  local text = id ~= '' and redis.call('HGET', KEYS[TASKS], id)
  local task = string.match(text or '', SHOWN)
  if task then
    shown[#shown + 1] = record_of(id, task, state_of(id), now)
  end
end
return shown
