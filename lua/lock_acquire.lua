-- Takes an exclusive lock, or says that it is taken.
--
-- KEYS[1]  the lock: a string, the owner, which expires with its lease
-- KEYS[2]  the counter of fencing tokens: odd while the lock is held, even after a clean release
-- ARGV[1]  the owner
-- ARGV[2]  the ttl in milliseconds
--
-- Returns
--   token           granted; token % 4 is 3 when the holder before never released, else 1
--   {remaining}     taken, for so many milliseconds; -1: by somebody who set no ttl
--   error CONFLICT  the counter holds something else; nothing was changed
--
-- Repeated by its owner it gives the same token and a full ttl. All that a free lock needs is read before the
-- first write, and both writes are SET: a command that is denied or refused leaves nothing behind.

local COUNTER_TTL = '86400000'
local LARGEST = 2 ^ 53 - 2 ^ 12 -- the next tokens are still exact
local HAND_OVERS = 1024 -- of one lease inside its process; each uses the next odd number

local counter = redis.pcall('GET', KEYS[2])
if type(counter) == 'table' and not string.find(counter.err, 'WRONGTYPE', 1, true) then
  return counter
end
local stored = tonumber(counter or 0)
if not (stored and stored >= 0 and stored < LARGEST and stored % 1 == 0) then
  return redis.error_reply('CONFLICT ' .. KEYS[2] .. ' holds no counter')
end
local odd = stored % 2 == 1
local time = redis.call('TIME')

if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return {redis.call('PTTL', KEYS[1])}
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if odd then
    return stored
  end
end

-- Odd, above every number that was used, and no smaller than the time, so that it increases when the counter
-- was lost. Its second bit says abandoned, so that the repetition above says it again. A number is exact up
-- to 2^53, and as an argument and as an answer it keeps all digits.
local floor = math.max(stored + (odd and 2 * HAND_OVERS + 1 or 1), time[1] * 1000000 + time[2])
local token = floor + ((odd and 3 or 1) - floor) % 4
redis.call('SET', KEYS[2], token, 'PX', COUNTER_TTL)
return token
