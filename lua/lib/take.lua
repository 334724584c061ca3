-- Takes a lock beside or before others. `name` is the table that lib/name.lua describes, `ask` are the arguments of
-- lock/acquire.lua.
-- use: token, mode, holders, grant

-- Gives the token of an owner that has the lock already, or that can be let in and for which nobody waits.
local function take_unqueued(name, ask)
  local owner, ttl, mode = ask[OWNER], ask[TTL], ask[MODE]
  if name[HELD] == owner then
    redis.call('PEXPIRE', name[LOCK], ttl)
    if name[STORED] % 2 == 0 then
      name[STORED] = next_token(name[STORED], name[FROM] or name[NOW])
      write_counter(name)
    end
    return name[STORED]
  end
  local may_share = is_shared(name) and not is_exclusive(mode)
  local is_holder = may_share and redis.call('ZSCORE', name[HOLDERS], member_of(owner, mode))
  if is_holder then
    return grant_again(name, owner, ttl, mode)
  elseif name[LETTERS] == '' and fits(name, mode) then
    return grant(name, owner, ttl, mode)
  end
end
