-- Included behind held.lua and token.lua by the scripts that let somebody in: how that is written down.
--
-- KEYS[1]  the lock, see held.lua
-- KEYS[2]  the counter, see counter.lua and line.lua
-- KEYS[6]  who shares the lock, see held.lua
--
-- DAY is what the counter lives for at most. `counter` is what KEYS[2] says, nothing when it isn't there, `stored` the
-- number in it and `lines` the letters behind that.

local function write_counter()
  counter = string.format('%d', stored) .. lines
  redis.call('SET', KEYS[2], counter, 'PX', DAY)
end

-- Lets in the first of those that share.
local function open_to(owner, mode, last)
  held, used = mode == 'r' and READERS or PERMITS, count_of(mode)
  -- A command that is denied or refused leaves nothing that stays: the first needs memory, and the second deletes who
  -- was let in before somebody deleted the lock, or finds that no ttl may be set.
  redis.call('SET', KEYS[1], mark(), 'PXAT', last)
  redis.call('PEXPIREAT', KEYS[6], 1)
  redis.call('ZADD', KEYS[6], last, member_of(owner, mode))
  redis.call('PEXPIREAT', KEYS[6], last)
end

-- Lets in one more of those that share, or one of them again.
local function join(owner, mode, ends)
  local last = math.max(last_end(), ends)
  if redis.call('ZADD', KEYS[6], ends, member_of(owner, mode)) == 1 then
    used = used + count_of(mode)
  end
  keep(last)
end

-- Lets an owner in, and gives its token.
local function grant(owner, ttl, mode)
  stored = next_token(not is_exclusive(mode))
  if is_exclusive(mode) then
    redis.call('SET', KEYS[1], owner, 'PX', ttl)
    held = owner
  else
    (held and join or open_to)(owner, mode, clock + ttl)
  end
  write_counter()
  return stored
end

