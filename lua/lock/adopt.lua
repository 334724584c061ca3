-- Makes the lease that another owner has the owner's.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value; without it there is none, or the caller doesn't ask for it
-- ARGV[1]     the owner
-- ARGV[2]     its ttl in milliseconds
-- ARGV[3]     the mode, see lib/mode.lua
-- ARGV[4]     the owner that has the lease
-- ARGV[5]     the last token that was used under it, plus 1
--
-- Returns
--   token           the owner has the lease; the token is above all that were used
--   {token, value}  the same, asked for the value: nil when there is none
--   0               the lease isn't the other owner's, or was lost and is its own anew; nothing was changed
--   error CONFLICT  as in lock/acquire.lua; nothing was changed
--
-- Repeated by its owner it gives the same token, and a full ttl.
-- use: time, mode, name, token, holders, grant, queue, take

local owner, ttl, mode, from, counter_after = ARGV[OWNER], ARGV[TTL], ARGV[MODE], ARGV[4], tonumber(ARGV[5])
local name, failure = read_name(KEYS, redis.pcall('GET', KEYS[COUNTER]), server_time())
if failure then
  return failure
end
read_holders(name, redis.call('GET', KEYS[LOCK]))

local function adopt_exclusive(name)
  if name[HELD] == owner then
    return take_unqueued(name, ARGV)
  end
  -- By a late copy of its request the other owner has the lock anew, and others may have had it since.
  if name[HELD] ~= from or name[STORED] >= counter_after then
    return 0
  end
  name[STORED] = counter_after
  return grant(name, owner, ttl, mode)
end

local function adopt_shared(name)
  if not is_shared(name) then
    return 0
  end
  if redis.call('ZREM', name[HOLDERS], member_of(from, mode), '0 ' .. from) > 0 then
    name[USED] = name[USED] - count_of(mode)
  elseif redis.call('ZSCORE', name[HOLDERS], member_of(owner, mode)) then
    return grant_again(name, owner, ttl, mode)
  else
    return 0
  end
  -- Even, for nobody has abandoned what is passed on; or 7 of 8 as before, where the last exclusive holder never released.
  local used = counter_after - 1
  used = used + (name[STORED] % 2 == 1 and (7 - used) % 8 or used % 2)
  name[STORED] = math.max(name[STORED], used)
  return grant(name, owner, ttl, mode)
end

local token = (is_exclusive(mode) and adopt_exclusive or adopt_shared)(name)
if token > 0 and name[LETTERS] ~= '' then
  -- A late copy of its request may have put the other owner into the queue.
  pcall(leave, name, queue_of(name, mode), from)
end
if token > 0 and KEYS[VALUE] then
  return {token, redis.call('GET', KEYS[VALUE])}
end
return token
