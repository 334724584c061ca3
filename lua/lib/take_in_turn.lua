-- Takes a lock for which others wait. `name` is the table that lib/name.lua describes, `ask` are the arguments of
-- lock/acquire.lua.
-- use: token, holders, grant, queue, hand_off

-- Gives the token if it is the owner's turn, or if it is a reader that goes first. Others whose turn it is are let in.
local function take_in_turn(name, ask)
  local owner, mode = ask[OWNER], ask[MODE]
  local after_exclusive = was_exclusive(name[STORED])
  local token = hand_off(name, owner, after_exclusive)
  if token then
    return token
  end
  if fits(name, mode) and (ask[GOES_FIRST] or not may_have(name, 'q')) then
    leave(name, queue_of(name, mode), owner)
    return grant(name, owner, ask[TTL], mode)
  end
  if not ask[HEARTBEAT_WITHIN] then
    leave(name, queue_of(name, mode), owner)
    hand_off(name, nil, after_exclusive)
  end
end
