-- Ends a lease, and lets in the next. An owner that waits leaves the queue.
--
-- KEYS[1..6]  the lock, the counter, the queue, the waiters, the readers, the holders: see README.md
-- KEYS[7]     the value; without it the value stays as it is
-- KEYS[8]     the same, in a cluster, see lib/store.lua
-- ARGV[1]     the owner
-- ARGV[2]     what the counter becomes if the lock was held exclusively: above the last token that was used; 0 when the
--             owner doesn't know whether it was granted one
-- ARGV[3]     the mode, see lib/mode.lua
-- ARGV[4]     the new value, a string: it is written if the lock is the owner's
-- ARGV[5]     for how many milliseconds the lock stays taken, though nobody has it; without it, it is free at once
--
-- Returns
--   1  released: now, or (if it was held exclusively) by the same command before
--   0  the lock isn't the owner's; nothing was changed, but that the owner has left the queue
--   2  the same, and the same command may have released it before: it was shared, or others were let in since. What the
--      owner got anew meanwhile, by a late copy of its request, is released
--   3  not the owner's, because its lease was broken
--
-- With ARGV[5] the counter becomes ARGV[2] + 2 where ARGV[2] % 4 is 0: by % 4 == 2 the script that lets in the next, later,
-- knows that the lock was held exclusively.
--
-- The counter never goes back. Where it is above what the release brings, the owner has the lock anew, and doesn't know
-- the token: that is released as if ARGV[2] were 0, without the value, since others may have stored a later one. Of an owner
-- that shares this is told by its own token, which is looked at where others were let in since.
--
-- A write that frees something comes before those that need memory: a server without any refuses these, but not
-- after such a one.

local owner, counter_after, mode, keep_for = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[5]
local exclusive = mode == 'x' or mode == 'w'
local lock, counter = unpack(redis.call('MGET', KEYS[LOCK], KEYS[COUNTER]))

-- The usual release: nobody waits for an exclusive lock. Then the counter is a number and nothing else. Neither this
-- nor the usual hand-off needs a function, see README.md.
local stored = tonumber(counter)
if exclusive and lock == owner and stored and stored < counter_after and not keep_for then
  -- The counter lives for longer than the lease for which it was counted or renewed last.
  redis.call('DEL', KEYS[LOCK])
  if stored + 1 ~= counter_after or redis.pcall('INCR', KEYS[COUNTER]) ~= counter_after then
    -- The lease was handed over inside its process, or ended by a panic; or INCR, which costs less, is denied.
    redis.call('SET', KEYS[COUNTER], ARGV[2], 'KEEPTTL')
  end
  if KEYS[VALUE] then
    redis.call('SET', KEYS[VALUE], ARGV[4])
    redis.pcall(KEYS[CHANNEL] and 'SPUBLISH' or 'PUBLISH', KEYS[VALUE], '')
  end
  return 1
end

-- The usual hand-off: nobody waits to read, and the first waiter wants the lock exclusively, lives, and hears. It does
-- what lib/hand_off.lua would do.
local popped
local number = exclusive and lock == owner and not keep_for and string.match(counter or '', COUNTER_AND_QUEUE)
if number and tonumber(number) < counter_after and counter_after % 2 == 0 then
  popped = redis.pcall('LPOP', KEYS[QUEUE])
  popped = type(popped) == 'string' and popped or nil
  local waiter = popped and popped ~= owner and redis.pcall('HGET', KEYS[WAITERS], popped)
  waiter = type(waiter) == 'string' and waiter or ''
  local overdue, ttl, inbox = string.match(waiter, EXCLUSIVE_WAITER)
  local count, publish = 'NUMSUB', 'PUBLISH'
  if not overdue then
    overdue, ttl, inbox = string.match(waiter, FOLLOWING_WAITER)
    if overdue and string.find(inbox, TAG, 1, true) then
      count, publish = 'SHARDNUMSUB', 'SPUBLISH'
    end
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if overdue and overdue * 1000 > now and (redis.pcall('PUBSUB', count, inbox)[2] or 0) > 0 then
    local removed = redis.pcall('HDEL', KEYS[WAITERS], popped, owner)
    if removed == 2 then
      -- A late copy of its first request had put the owner into the queue.
      redis.call('LREM', KEYS[QUEUE], 1, owner)
    end
    if type(removed) == 'number' then
      local floor = math.max(counter_after + 1, now)
      local token = string.format('%d', floor + (1 - floor) % 4)
      redis.call('SET', KEYS[LOCK], popped, 'PX', ttl)
      redis.call('SET', KEYS[COUNTER], token .. 'q', 'PX', DAY)
      if KEYS[VALUE] then
        redis.call('SET', KEYS[VALUE], ARGV[4])
        redis.pcall(KEYS[CHANNEL] and 'SPUBLISH' or 'PUBLISH', KEYS[VALUE], '')
      end
      if type(redis.pcall(publish, inbox, popped .. ' ' .. token)) == 'table' then
        redis.call('PEXPIRE', KEYS[LOCK], math.min(ttl, math.ceil(overdue - now / 1000)))
      end
      return 1
    end
  end
end

-- use: mode

local was_holder, is_anew = false, false
if not exclusive and counter_after > 0 and lock and string.find(lock, SHARED) then
  -- Where nobody was let in since, the owner wasn't either. A counter that was lost may have begun anew below it.
  local last = tonumber(string.match(counter or '', LEADING_NUMBER))
  local token = last ~= counter_after - 1 and redis.call('ZSCORE', KEYS[HOLDERS], '0 ' .. owner)
  is_anew = token and -token >= counter_after
end
if not exclusive and not keep_for and lock and string.find(lock, SHARED) then
  was_holder = redis.call('ZREM', KEYS[HOLDERS], member_of(owner, mode), '0 ' .. owner) > 0
  if was_holder and stored and redis.call('EXISTS', KEYS[HOLDERS]) == 0 then
    redis.call('DEL', KEYS[LOCK])
    return is_anew and 2 or 1
  end
end

-- use: time, name, release

local name = read_name(KEYS, counter, server_time(), popped)
if exclusive then
  return release_exclusive(name, lock, owner, counter_after, ARGV[4], keep_for)
end
read_holders(name, lock)

-- What a holder leaves taken is nobody's: a renewal that comes late doesn't find it. Says whether it is taken.
local function stay_taken(name, owner, mode, keep_for)
  local kept = count_of(mode) .. ' kept ' .. owner
  if redis.call('ZREM', name[HOLDERS], member_of(owner, mode), '0 ' .. owner) == 0 then
    return redis.call('ZSCORE', name[HOLDERS], kept)
  end
  if redis.call('ZADD', name[HOLDERS], name[CLOCK] + keep_for, kept) == 0 then
    -- It stayed taken before, and was granted again by a late copy of the request.
    name[USED] = name[USED] - count_of(mode)
  end
  keep_until(name, last_end(name))
  wake(name)
  return true
end

if keep_for and is_shared(name) and stay_taken(name, owner, mode, keep_for) then
  return is_anew and 2 or 1
end
if was_holder and name[HELD] then
  name[USED] = name[USED] - count_of(mode)
  keep_until(name, last_end(name))
elseif was_holder then
  redis.call('DEL', name[LOCK])
end
if name[LETTERS] ~= '' then
  local left, failure = pcall(leave, name, queue_of(name, mode), owner)
  if not left and not was_holder then
    error(failure)
  end
  if name[STORED] then
    try_hand_off(name, not name[HELD] and was_exclusive(name[STORED]))
  end
end
return was_holder and (is_anew and 2 or 1) or is_broken(name, owner) and 3 or counter_after == 0 and 0 or 2
