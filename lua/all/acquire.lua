-- Takes several locks exclusively, all or none; or says that one is taken, and enters their queues or leaves them.
--
-- KEYS  six for each name, as in lock/acquire.lua
-- ARGV  as in lock/acquire.lua; without heartbeat_within the owner has none of the locks after this
--
-- Returns
--   token  the owner has all locks; the token is above all earlier ones of each; token % 4 is 3 if the exclusive holder
--          before of one of them never released
--   {remaining, counter, was_queued, knows_holder, length, holder}
--          one at least is taken: as lock/acquire.lua says it.
--          remaining: of the one that may come free next
--          length: of the longest queue, 0 if the owner has one of the locks
--          holder: of the first that is taken
--   0      the owner's lease of one name was broken: it gets nothing, has none of the others after this, and is in no queue
--   error  as there; the owner has none of the locks
--
-- An owner that waits enters all queues at once, and has each lock when its turn comes: so of two that wait, one is
-- before the other wherever they meet, and none waits for one behind it. An owner that has lost its place in one queue,
-- or a lock that it had, gives up the others and enters all queues anew.
-- use: time, several, name, broken, refuse, take, take_in_turn, release

local names, ask, now = keys_of_each(KEYS), ARGV, server_time()
if ask[HEARTBEAT_WITHIN] == '' then
  ask[HEARTBEAT_WITHIN] = nil
end

local function acquire(keys, ask, now)
  local name, failure = read_name(keys, redis.pcall('GET', keys[COUNTER]), now)
  if failure then
    return failure
  end
  name[FROM] = tonumber(ask[TOKENS_FROM])
  if is_broken(name, ask[OWNER]) then
    return 0
  end
  local lock = redis.call('GET', keys[LOCK])
  read_holders(name, lock)
  local token = take_unqueued(name, ask)
  if not token and name[LETTERS] ~= '' then
    token = take_in_turn(name, ask)
  end
  return token or refuse(name, ask, lock)
end

local function release(keys, owner, now)
  local lock, counter = unpack(redis.call('MGET', keys[LOCK], keys[COUNTER]))
  release_exclusive(read_name(keys, counter, now), lock, owner, 0)
end

local function give_up(names, owner, now)
  for _, keys in ipairs(names) do
    pcall(release, keys, owner, now)
  end
end

-- The owner's place in one queue was lost with a key: it may be before another there, and behind it elsewhere.
local function leave_all(names, owner, now)
  give_up(names, owner, now)
  for _, keys in ipairs(names) do
    redis.pcall('LREM', keys[QUEUE], 0, owner)
  end
end

-- How many of the names the owner has or waits for.
local function count_known(names, owner)
  local known = 0
  for _, keys in ipairs(names) do
    if redis.pcall('GET', keys[LOCK]) == owner or type(redis.pcall('HGET', keys[WAITERS], owner)) == 'string' then
      known = known + 1
    end
  end
  return known
end

-- Adds the answer of one name, that it is taken, to those of others.
local function join_refusals(taken, answer)
  if not taken then
    return answer
  end
  if answer[1] >= 0 and (taken[1] < 0 or answer[1] < taken[1]) then
    taken[1] = answer[1]
  end
  taken[4] = math.min(taken[4], answer[4])
  taken[5] = math.max(taken[5], answer[5])
  return taken
end

-- Asks for one name after the other, until one fails, or is taken while the owner doesn't wait. Gives the tokens, by
-- the key of the counter; the answer of those that are taken, and whether the owner has entered a queue; or a failure,
-- which is 0 if the owner's lease of a name was broken.
local function ask_all(names, ask, now)
  local asked = {tokens = {}}
  for _, keys in ipairs(names) do
    local ok, answer = pcall(acquire, keys, ask, now)
    if not ok or (type(answer) == 'table' and answer.err) then
      asked.failure = error_of(answer)
      return asked
    elseif answer == 0 then
      asked.failure = 0
      return asked
    elseif type(answer) == 'number' then
      asked.tokens[keys[COUNTER]] = answer
    else
      asked.taken = join_refusals(asked.taken, answer)
      asked.has_entered = asked.has_entered or answer[3] == 0
      if not ask[HEARTBEAT_WITHIN] then
        return asked
      end
    end
  end
  return asked
end

-- Whether the first name that is taken is held by an owner that waits for a name that this one has: queues that were
-- lost with their keys are in another order now, and both would wait for ever.
local function is_stuck(names, tokens)
  local holder
  for _, keys in ipairs(names) do
    holder = holder or (not tokens[keys[COUNTER]] and redis.pcall('GET', keys[LOCK]))
  end
  for _, keys in ipairs(names) do
    local waiter = tokens[keys[COUNTER]] and redis.pcall('HGET', keys[WAITERS], tostring(holder))
    if type(waiter) == 'string' then
      return true
    end
  end
  return false
end

-- Makes one token of those of all names, and gives it.
local function unite(names, tokens)
  local token, abandoned = 0, false
  for _, its in pairs(tokens) do
    token, abandoned = math.max(token, its), abandoned or its % 4 == 3
  end
  if abandoned then
    token = token + (3 - token) % 8
  end
  for _, keys in ipairs(names) do
    local its = tokens[keys[COUNTER]]
    local number = counted(token, its)
    if its ~= number then
      local letters = string.match(redis.call('GET', keys[COUNTER]), '^%d+(.*)$')
      redis.call('SET', keys[COUNTER], string.format('%d', number) .. letters, 'PX', DAY)
    end
  end
  return token
end

local owner, waits = ask[OWNER], ask[HEARTBEAT_WITHIN]
local known = count_known(names, owner)
if known > 0 and known < #names then
  leave_all(names, owner, now)
  known = 0
end
local asked = ask_all(names, ask, now)
local may_be_behind = waits and known > 0 and asked.taken and not asked.failure
if may_be_behind and (asked.has_entered or is_stuck(names, asked.tokens)) then
  leave_all(names, owner, now)
  known = 0
  asked = ask_all(names, ask, now)
end
if asked.failure or (asked.taken and not waits) then
  give_up(names, owner, now)
end
if asked.failure or not asked.taken then
  return asked.failure or unite(names, asked.tokens)
end
local taken = asked.taken
taken[3] = known > 0 and 1 or 0
if next(asked.tokens) then
  -- What it has already is a lease, which its heartbeats renew: they mustn't be rare.
  taken[5] = 0
end
return taken
