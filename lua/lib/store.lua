-- Stores a value, and tells those who wait until it changes: on a channel that is called as its key, and is a sharded one
-- in a cluster. That it can't be told hinders nothing: they look by themselves from time to time.

local function store(value)
  redis.call('SET', KEYS[VALUE], value)
  redis.pcall(KEYS[CHANNEL] and 'SPUBLISH' or 'PUBLISH', KEYS[VALUE], '')
end
