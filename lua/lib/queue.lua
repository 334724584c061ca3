-- The queues of a name: who is in them, and who isn't. `name` is the table that name.lua describes.

-- Whether there may be a queue: 'q' for the one of exclusive owners and permits, 'r' for the one of readers.
local function may_have(name, letter)
  return string.find(name[LETTERS], letter, 1, true)
end

local function queue_of(name, mode)
  return mode == 'r' and name[READ_QUEUE] or name[QUEUE]
end

-- Takes an owner out of its queue, if it waits.
local function leave(name, queue, owner)
  if redis.call('HDEL', name[WAITERS], owner) == 1 then
    redis.call('LREM', queue, 1, owner)
  end
end
