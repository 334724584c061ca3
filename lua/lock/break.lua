-- Ends the leases of all that hold a lock, whoever they are, and lets in the next. A lock that stays taken without a holder
-- is freed, too.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- ARGV[1]     the channel on which inboxes hear of leases that were broken
--
-- Returns {now, holders}
--   now      the server's time in microseconds
--   holders  those that had the lock, as lock/inspect.lua tells them
--   error    CONFLICT, as in lock/acquire.lua; nothing was changed
--
-- The counter goes above every token that a holder may have used. After one that had the lock exclusively it is odd, so that
-- the next such holder finds the lock abandoned.
--
-- It is never sent again by itself: that would break the lease of the next.
-- use: time, mode, name, token, holders, grant, queue, broken, shown, hand_off, release

local name, failure = read_name(KEYS, redis.pcall('GET', KEYS[COUNTER]), server_time())
if failure then
  return failure
end
read_holders(name, redis.call('GET', KEYS[LOCK]))

-- The owners that hold the name: {owner, how many permits, when its lease ends}.
local function owners_of(name, sharers)
  if sharers then
    return sharers
  end
  local left = redis.call('PTTL', name[LOCK])
  return {{name[HELD], 1, name[CLOCK] + (left < 0 and DAY or left)}}
end

local function count_up(name, was_shared)
  local stored = name[IS_COUNTED] and name[STORED] or name[NOW]
  if was_shared then
    name[STORED] = stored + 1 + ((stored % 2 == 1 and 7 or 0) - stored - 1) % 8
  else
    local floor = stored + (is_abandoned(stored) and 2 * HAND_OVERS + 1 or 1)
    name[STORED] = floor + (5 - floor) % 8
  end
  name[IS_COUNTED] = true
end

-- Names the owners in the counter, and drops those from there whose leases would be over by now.
local function name_broken(name, owners)
  local entries, last = {}, 0
  local function add(ends, entry)
    if ends > name[CLOCK] then
      entries[#entries + 1], last = string.format('%d', ends) .. entry, math.max(last, ends)
    end
  end
  for ends, entry in string.gmatch(name[BROKEN] or '', ' (%d+)(:%S+)') do
    add(tonumber(ends), entry .. ' ')
  end
  for _, owner in ipairs(owners) do
    if string.find(owner[1], OWNER_FORM) then
      add(owner[3], broken_entry(owner[1]))
    end
  end
  name[BROKEN] = last > 0 and string.format('b%d ', last) .. table.concat(entries) or nil
end

local function tell(name, owners, channel)
  local publish = string.find(channel, TAG, 1, true) and 'SPUBLISH' or 'PUBLISH'
  for _, owner in ipairs(owners) do
    if string.find(owner[1], OWNER_FORM) then
      redis.pcall(publish, channel, string.format('%s %d', owner[1], name[STORED]))
    end
  end
end

if not name[HELD] then
  try_hand_off(name, was_exclusive(name[STORED]))
  return {name[NOW], {}}
end

local is_held, sharers = name[HELD] ~= MARK_KEPT, is_shared(name) and sharers_of(name) or nil
local owners = is_held and owners_of(name, sharers) or {}
local shown = is_held and shown_holders(name, sharers) or {}
-- What frees something comes first: a server without memory refuses other writes, but not behind it.
redis.call('DEL', name[LOCK], name[HOLDERS])
if is_held then
  count_up(name, sharers)
end
name[HELD], name[USED] = nil, 0
name_broken(name, owners)
tell(name, owners, ARGV[1])
if not try_hand_off(name, not sharers) then
  redis.call('DEL', name[LOCK])
  if name[IS_COUNTED] then
    write_counter(name)
  end
end
return {name[NOW], shown}
