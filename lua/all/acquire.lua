-- Takes several locks exclusively, all or none, or says that one is taken, and enters their lines.
--
-- KEYS  six for each name, as in lock_acquire.lua
-- ARGV  as in lock_acquire.lua: without a promise the owner doesn't wait, and has none of them after this
--
-- Returns
--   token                 the owner has them all; the token is above all earlier ones of each; token % 4 is 3 when the
--                         holder before of one of them never released
--   {remaining, counter, stood, known, length, holder}
--                         one at least is taken: as lock_acquire.lua says it, of the next that may come free; the length
--                         of the longest line, 0 when the owner has one of the locks; and a holder of the first that is
--                         taken
--   error                 as there; the owner has none
--
-- Whoever waits enters all lines at once, and has each lock when its turn comes: so of two that wait, one is in front
-- of the other wherever they meet, and none waits for one behind it. Who has lost its place in one line, or a lock
-- that it had, gives up the others and enters all lines anew.

local all = KEYS
local owner, ttl, mode, promise, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function acquire(KEYS, ARGV)
-- include lock_acquire.lua
end

local function release(KEYS, ARGV)
-- include lock_release.lua
end

-- include each.lua

local function give_up()
  each(function(keys)
    pcall(release, keys, {owner, '0', mode})
  end)
end

-- Its place in one line was lost with a key: it may stand before another there, and behind it elsewhere.
local function leave_all()
  give_up()
  each(function(keys)
    redis.pcall('LREM', keys[3], 0, owner)
  end)
end

local names, known = 0, 0
each(function(keys)
  names = names + 1
  if redis.pcall('GET', keys[1]) == owner or type(redis.pcall('HGET', keys[4], owner)) == 'string' then
    known = known + 1
  end
end)
if known > 0 and known < names then
  leave_all()
  known = 0
end

local token, tokens, abandoned, taken, failure, entered
local function ask()
  token, tokens, abandoned, taken, failure, entered = 0, {}, false, nil, nil, false
  each(function(keys)
    if failure or (taken and not promise) then
      return
    end
    local done, answer = pcall(acquire, keys, {owner, ttl, mode, promise, inbox})
    if not done then
      failure = type(answer) == 'table' and answer or redis.error_reply(answer)
    elseif type(answer) == 'number' then
      tokens[keys[2]] = answer
      token = math.max(token, answer)
      abandoned = abandoned or answer % 4 == 3
    elseif answer.err then
      failure = answer
    else
      entered = entered or answer[3] == 0
      taken = taken or answer
      if answer[1] >= 0 and (taken[1] < 0 or answer[1] < taken[1]) then
        taken[1] = answer[1]
      end
      taken[4] = math.min(taken[4], answer[4])
      taken[5] = math.max(taken[5], answer[5])
    end
  end)
end
-- Whether the first that is taken is another's who waits for one that the owner has: lines that were lost with their
-- keys stand in another order now, and both would wait for ever.
local function is_stuck()
  local holder
  each(function(keys)
    holder = holder or (not tokens[keys[2]] and redis.pcall('GET', keys[1]))
  end)
  local stuck = false
  each(function(keys)
    stuck = stuck or (tokens[keys[2]] and type(redis.pcall('HGET', keys[4], tostring(holder))) == 'string')
  end)
  return stuck
end

ask()
if promise and taken and not failure and known > 0 and (entered or is_stuck()) then
  leave_all()
  known = 0
  ask()
end
if failure or (taken and not promise) then
  give_up()
end
if failure or taken then
  if taken then
    taken[3] = known > 0 and 1 or 0
    if next(tokens) then
      -- What it has already is a lease, which its heartbeats renew: they mustn't be rare.
      taken[5] = 0
    end
  end
  return failure or taken
end

-- One token for all.
if abandoned then
  token = token + (3 - token) % 8
end
each(function(keys)
  if tokens[keys[2]] ~= token then
    local lines = string.match(redis.call('GET', keys[2]), '%a*$')
    redis.call('SET', keys[2], string.format('%d', token) .. lines, 'PX', '86400000')
  end
end)
return token
