-- How it is written down that an owner is let in. `name` is the table that name.lua describes.
-- use: token, mode, holders

-- `text` is its number as a text, if there is one already: to make one costs as much as a short command.
local function write_counter(name, text)
  text = text or string.format('%d', name[STORED])
  redis.call('SET', name[COUNTER], text .. name[LETTERS] .. (name[BROKEN] or ''), 'PX', DAY)
  name[IS_COUNTED] = true
end

-- Lets in the first of those that share, with a token.
local function open_to(name, owner, mode, ends, token)
  name[HELD], name[USED] = mode == 'r' and MARK_READERS or MARK_PERMITS, count_of(mode)
  name[OF] = mode ~= 'r' and string.match(mode, '/%d+')
  -- A number would be made a text by each command.
  ends = string.format('%d', ends)
  -- A command that is denied or refused leaves nothing that stays: the first needs memory, and the second deletes
  -- holders of a lock that somebody deleted, or finds that no ttl may be set.
  redis.call('SET', name[LOCK], mark_of(name), 'PXAT', ends)
  redis.call('PEXPIREAT', name[HOLDERS], 1)
  redis.call('ZADD', name[HOLDERS], ends, member_of(owner, mode), '-' .. token, '0 ' .. owner)
  redis.call('PEXPIREAT', name[HOLDERS], ends)
end

-- Lets in one more of those that share, or one of them again.
local function join(name, owner, mode, ends, token)
  local last = math.max(last_end(name), ends)
  if redis.call('ZADD', name[HOLDERS], ends, member_of(owner, mode), '-' .. token, '0 ' .. owner) > 0 then
    name[USED] = name[USED] + count_of(mode)
  end
  name[OF] = mode ~= 'r' and string.match(mode, '/%d+')
  keep_until(name, last)
end

-- Lets an owner in for `ttl` milliseconds, and gives its token. It must fit.
local function grant(name, owner, ttl, mode)
  name[STORED] = next_token(name[STORED], name[FROM] or name[NOW], not is_exclusive(mode))
  local token = string.format('%d', name[STORED])
  if is_exclusive(mode) then
    redis.call('SET', name[LOCK], owner, 'PX', ttl)
    name[HELD] = owner
  else
    (name[HELD] and join or open_to)(name, owner, mode, name[CLOCK] + ttl, token)
  end
  write_counter(name, token)
  return name[STORED]
end

-- Lets one that shares have it for another `ttl` milliseconds, and gives the token that it was granted: so a copy of its
-- request that comes late changes nothing that the owner knows.
local function grant_again(name, owner, ttl, mode)
  local token = -(redis.call('ZSCORE', name[HOLDERS], '0 ' .. owner) or 0)
  if token == 0 then
    return grant(name, owner, ttl, mode)
  end
  name[STORED] = math.max(name[STORED], token)
  join(name, owner, mode, name[CLOCK] + ttl, string.format('%d', token))
  write_counter(name)
  return token
end
