-- Takes a lock, or says that it is taken, and enters its queue or leaves it.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value; without it there is none, or the caller doesn't ask for it
-- ARGV[1]     the owner
-- ARGV[2]     the ttl in milliseconds
-- ARGV[3]     the mode, see lib/mode.lua; R: to read, and before owners that wait for the lock exclusively
-- ARGV[4]     heartbeat_within: in how many milliseconds the owner's next heartbeat is overdue; without it, or if it is
--             empty, the owner doesn't wait, and leaves the queue if it is in it
-- ARGV[5]     the owner's inbox, empty when it can't hear
-- ARGV[6]     where it hears, if another server may follow this one: the start of that server's run id, empty when it
--             isn't known
-- ARGV[7]     the token is no smaller than this, in place of the server's time: so several servers that are asked give the
--             same one
--
-- Returns
--   token           the owner has the lock; token % 4 is 3 when the exclusive holder before never released
--   {token, value}  the same, asked for the value: nil when there is none
--   {remaining, counter, was_queued, knows_holder, length, holder}
--                   the lock is taken.
--                   remaining: for so many milliseconds; -1: by a client that set no ttl
--                   counter: any token that the owner is granted after this is above it
--                   was_queued: 1 if the owner was in the queue before
--                   knows_holder: 0 if the holder is no crosslock, and won't hand the lock off
--                   length: of the queue, the owner included; 0 if it doesn't wait
--                   holder: <host>/<pid>/<thread> of an exclusive holder, told to an owner that enters the queue
--   0               the owner's lease was broken: until that would have ended it gets nothing, and enters no queue
--   error CONFLICT  the counter's key holds something else; nothing was changed
--
-- Repeated by its owner it gives the same token, and a full ttl; or keeps its place in the queue. A command that is denied
-- or refused leaves nothing behind.

local owner, ttl, mode = ARGV[OWNER], ARGV[TTL], ARGV[MODE]
local value = KEYS[VALUE] and redis.call('GET', KEYS[VALUE])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local from = tonumber(ARGV[TOKENS_FROM]) or now
local lock, counter
if ARGV[HEARTBEAT_WITHIN] == '' then
  ARGV[HEARTBEAT_WITHIN] = nil
end
if ARGV[HEARTBEAT_WITHIN] then
  -- Most likely it is taken.
  lock, counter = unpack(redis.call('MGET', KEYS[LOCK], KEYS[COUNTER]))
end

-- The usual acquisition: an exclusive lock that was released, and for which nobody waits. Then the counter is an even
-- number and nothing else, which is seen when the token takes its place. This needs no function, see README.md.
if not lock and (mode == 'x' or mode == 'w') and redis.call('SET', KEYS[LOCK], owner, 'NX', 'PX', ttl) then
  local token = from + (1 - from) % 4
  local text = string.format('%d', token)
  local before = redis.pcall('SET', KEYS[COUNTER], text, 'KEEPTTL', 'GET')
  if type(before) == 'string' then
    local stored = #before == DIGITS and tonumber(before)
    if stored and stored % 2 == 0 and stored >= SMALLEST and stored < LARGEST then
      if stored >= token then
        token = stored + 1
        token = token + (1 - token) % 4
        redis.call('SET', KEYS[COUNTER], string.format('%d', token), 'KEEPTTL')
      end
      -- Once an hour is enough for a key that lives for a day, if the lease doesn't last for hours (of a ttl of eight
      -- digits); a counter ahead of the clock tells no time.
      if now <= stored or now - now % HOUR > stored or #ttl > 7 then
        redis.call('PEXPIRE', KEYS[COUNTER], DAY)
      end
      return KEYS[VALUE] and {token, value} or token
    end
    redis.call('SET', KEYS[COUNTER], before, 'KEEPTTL')
  elseif not before and redis.pcall('EXISTS', KEYS[QUEUE], KEYS[READ_QUEUE]) == 0 then
    redis.call('SET', KEYS[COUNTER], text, 'PX', DAY)
    return KEYS[VALUE] and {token, value} or token
  elseif not before then
    redis.call('DEL', KEYS[COUNTER])
  end
  redis.call('DEL', KEYS[LOCK])
end

-- use: name, refuse

if lock == nil then
  lock, counter = unpack(redis.call('MGET', KEYS[LOCK], KEYS[COUNTER]))
end
-- MGET doesn't tell what isn't there from what is no string.
local name, failure = read_name(KEYS, counter or redis.pcall('GET', KEYS[COUNTER]), now)
if failure then
  return failure
end
name[FROM] = from
if mode == 'R' then
  ARGV[MODE], ARGV[GOES_FIRST] = 'r', true
end
if name[BROKEN] and string.find(name[BROKEN], ':' .. string.sub(owner, 1, ID_LENGTH) .. ' ', 1, true) then
  return 0
end
lock = lock or redis.call('GET', KEYS[LOCK])
if lock and lock ~= owner and not string.find(lock, SHARED) then
  -- Another has it exclusively: that needs nothing of what follows.
  name[HELD] = lock
  return refuse(name, ARGV, lock)
end

-- use: take

read_holders(name, lock)
local token = take_unqueued(name, ARGV)
if token then
  return KEYS[VALUE] and {token, value} or token
elseif name[LETTERS] == '' then
  return refuse(name, ARGV, lock)
end

-- use: take_in_turn

token = take_in_turn(name, ARGV)
if token then
  return KEYS[VALUE] and {token, value} or token
end
return refuse(name, ARGV, lock)
