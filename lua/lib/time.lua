-- The server's time in microseconds.
local function server_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
