-- Looks at a lock, and changes nothing.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
--
-- Returns {state, now, counter, remaining, out, of, holders, queue, readers}
--   state      free, exclusive, readers, permits or kept
--   now        the server's time in microseconds
--   counter    its number; -1 without a counter
--   remaining  for how many milliseconds the lock stays taken; -1: it has no end; -2: it is free
--   out        how many permits are out
--   of         of how many, behind a slash; empty where that isn't known
--   holders    {what others may see, permits, remaining, token} for each of the first, see lib/shown.lua; nothing may be
--              seen of a client that isn't crosslock. Leases that are over, or without a holder, aren't told
--   queue      {what others may see, mode} for each of the first waiters, in their order. Those that are gone aren't told
--   readers    the same of those that wait to read
--   error      CONFLICT, as in lock/acquire.lua
-- use: time, name, broken, shown

local name, failure = read_name(KEYS, redis.pcall('GET', KEYS[COUNTER]), server_time())
if failure then
  return failure
end
name[CLOCK] = math.floor(name[NOW] / 1000)

-- How many listen to each inbox; empty where that can't be counted.
local function listeners_of_all(inboxes)
  local count = string.find(inboxes[1] or '', TAG, 1, true) and 'SHARDNUMSUB' or 'NUMSUB'
  local counted = #inboxes > 0 and redis.pcall('PUBSUB', count, unpack(inboxes)) or {}
  local listeners = {}
  for at = 1, #counted, 2 do
    listeners[counted[at]] = counted[at + 1]
  end
  return listeners
end

local run_id
-- Whether a waiter hears at this server.
local function hears_here(hears_at)
  if hears_at ~= '' and run_id == nil then
    local info = redis.pcall('INFO', 'server')
    run_id = type(info) == 'string' and string.match(info, RUN_ID) or false
  end
  return hears_at == '' or hears_at == run_id
end

-- The first waiters of a queue that live. One that hears at another server may live though nobody listens here.
local function shown_waiters(name, queue)
  local waiters, inboxes = {}, {}
  for _, owner in ipairs(redis.call('LRANGE', queue, 0, MOST_SHOWN - 1)) do
    local waiter = redis.call('HGET', name[WAITERS], owner) or ''
    local overdue, hears_at, ttl, mode, inbox = string.match(waiter, ANY_WAITER)
    -- As in lib/hand_off.lua: for so long it may be heard from again.
    local lives_until = overdue and overdue + (inbox ~= '' and ttl or 0)
    if overdue and lives_until * 1000 > name[NOW] and not is_broken(name, owner) then
      waiters[#waiters + 1] = {public_part(owner), mode}
      inboxes[#inboxes + 1] = hears_here(hears_at) and inbox or ''
    end
  end
  local listeners, shown = listeners_of_all(inboxes), {}
  for at, waiter in ipairs(waiters) do
    if inboxes[at] == '' or listeners[inboxes[at]] ~= 0 then
      shown[#shown + 1] = waiter
    end
  end
  return shown
end

-- How many permits are out whose leases aren't over, of so many that the lock's key tells.
local function count_out(name, out)
  for _, member in ipairs(redis.call('ZRANGE', name[HOLDERS], '0', name[CLOCK], 'BYSCORE')) do
    out = out - string.match(member, '^%d+')
  end
  return out
end

-- How those that share the name hold it: the state, how many permits are out, and of how many.
local function shared_state(name, lock, sharers)
  local last = tonumber(redis.call('ZRANGE', name[HOLDERS], -1, -1, 'WITHSCORES')[2] or 0)
  if last <= name[CLOCK] then
    return 'free', 0, ''
  elseif lock == MARK_READERS then
    return #sharers > 0 and 'readers' or 'kept', 0, ''
  end
  local out, of = string.match(lock, PERMITS_OUT)
  return 'permits', count_out(name, out), of
end

local lock = redis.call('GET', KEYS[LOCK])
local state, out, of, holders = 'free', 0, '', {}
if lock and string.find(lock, SHARED) then
  local sharers = sharers_of(name)
  state, out, of = shared_state(name, lock, sharers)
  holders = shown_holders(name, sharers)
elseif lock == MARK_KEPT then
  state = 'kept'
elseif lock then
  state, name[HELD] = 'exclusive', lock
  holders = shown_holders(name)
end
local remaining, counter = redis.call('PTTL', KEYS[LOCK]), name[IS_COUNTED] and name[STORED] or -1
local queue, readers = shown_waiters(name, KEYS[QUEUE]), shown_waiters(name, KEYS[READ_QUEUE])
return {state, name[NOW], counter, remaining, out, of, holders, queue, readers}
