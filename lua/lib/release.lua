-- Ends an exclusive lease. `name` is the table that name.lua describes.
-- use: token, holders, grant, queue, broken, hand_off, store

-- Lets in the next, and says whether the lock is held then. A queue that can't be read hinders no release: its waiters
-- find that the lock is free.
local function try_hand_off(name, after_exclusive, leaving)
  local before = name[STORED]
  if name[LETTERS] ~= '' and not pcall(hand_off, name, nil, after_exclusive, leaving) then
    -- Nobody has it, and a token that was counted for a waiter is nobody's.
    name[STORED] = before % 2 == 0 and name[STORED] + name[STORED] % 2 or name[STORED]
    return false
  end
  return name[HELD]
end

-- Has the first waiter of a queue ask, which learns for how long the lock stays taken: no token is 0.
local function wake_first(name, letter, queue)
  if may_have(name, letter) then
    local owner, _, _, inbox = first_of(name, queue)
    if owner and inbox ~= '' then
      redis.call(string.find(inbox, TAG, 1, true) and 'SPUBLISH' or 'PUBLISH', inbox, owner .. ' 0')
    end
  end
end

-- A queue that can't be read, or a waiter that mustn't be told, hinders nothing: the waiter's next heartbeat asks.
local function wake(name)
  pcall(wake_first, name, 'q', name[QUEUE])
  pcall(wake_first, name, 'r', name[READ_QUEUE])
end

-- The lock isn't the owner's: it leaves the queue. What became of a lease that is no more is told by the counter; one
-- below that of its release, or none, knows of no release.
local function leave_exclusively(name, owner, counter_after)
  local left, failure = pcall(leave, name, name[QUEUE], owner)
  if is_broken(name, owner) then
    return 3
  end
  if counter_after > 0 then
    local counter = name[IS_COUNTED] and name[STORED] or 0
    return counter == counter_after and 1 or counter > counter_after and 2 or 0
  end
  if not left then
    error(failure)
  end
  if name[STORED] and name[LETTERS] ~= '' then
    try_hand_off(name, not name[HELD] and was_exclusive(name[STORED]))
  end
  return 0
end

-- `lock` is what the lock's key says. The other arguments and the answer are those of lock/release.lua; without a value
-- it stays as it is.
local function release_exclusive(name, lock, owner, counter_after, value, keep_for)
  if keep_for and counter_after > 0 and counter_after % 4 == 0 then
    -- Whoever lets in the next has to find by the number that the lock was held exclusively.
    counter_after = counter_after + 2
  end
  read_holders(name, lock)
  if name[HELD] ~= owner then
    return leave_exclusively(name, owner, counter_after)
  end
  local is_anew = counter_after > 0 and name[STORED] and name[STORED] >= counter_after
  local knows_token = counter_after > 0 and not is_anew
  if knows_token then
    name[STORED] = counter_after
  elseif name[STORED] and name[STORED] % 4 == 1 then
    -- Nobody worked with it. With 3 the lock was found abandoned: nobody was told, so it stays for the next holder.
    name[STORED] = name[STORED] + 1
  end
  name[HELD] = nil
  if keep_for then
    redis.call('DEL', name[LOCK])
    redis.call('SET', name[LOCK], MARK_KEPT, 'PX', keep_for)
    write_counter(name)
    wake(name)
  elseif not name[STORED] or not try_hand_off(name, true, owner) then
    redis.call('DEL', name[LOCK])
    if name[STORED] and (name[IS_COUNTED] or knows_token) then
      write_counter(name)
    end
  end
  if name[VALUE] and not is_anew then
    store(value)
  end
  return is_anew and 2 or 1
end
