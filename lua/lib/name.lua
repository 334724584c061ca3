-- What a script knows of one name: a table, which the other functions take and change.
--
--   name[LOCK], [COUNTER], [QUEUE], [WAITERS], [READ_QUEUE], [HOLDERS], [VALUE]
--                     its keys; no value where the caller doesn't ask for it
--   name[NOW]         the server's time in microseconds
--   name[IS_COUNTED]  whether there is a counter
--   name[STORED]      the number that the counter holds: 0 without a counter, nil where the key holds no counter
--   name[LETTERS]     which queues there may be: 'q', 'r', both or none
--   name[BROKEN]      the owners whose leases were broken, as the counter's key has them; nil without any
--   name[POPPED]      an owner that the script has taken off the queue, and that is still the next
--   name[DROPPED]     how many waiters the script has dropped; nil before the first
--   name[FROM]        what a token is no smaller than, in place of the server's time; nil where that counts
-- and, as soon as lib/holders.lua has read them:
--   name[CLOCK]       the server's time in milliseconds
--   name[HELD]        nil, MARK_READERS, MARK_PERMITS, MARK_KEPT, or the exclusive owner
--   name[USED]        how many permits are out
--   name[OF]          of how many, behind a slash; empty where that isn't known

-- `counter` is what the counter's key says: a text, false, or an error. Gives also the answer of an acquisition where
-- the key holds no counter.
local function read_name(keys, counter, now, popped)
  local stored, letters, broken, until_then, failure = 0, nil, nil, nil, nil
  if type(counter) == 'string' then
    stored, letters = string.match(counter, ANY_COUNTER)
    if not stored then
      stored, letters, broken, until_then = string.match(counter, COUNTER_AND_BROKEN)
      broken = broken and until_then * 1000 > now and broken or nil
    end
    stored = tonumber(stored)
    stored = stored and stored < LARGEST and stored or nil
  elseif counter then
    stored = nil
  else
    letters = redis.call('EXISTS', keys[QUEUE], keys[READ_QUEUE]) > 0 and 'qr' or ''
  end
  if not stored then
    local is_other = type(counter) == 'table' and not string.find(counter.err, 'WRONGTYPE', 1, true)
    failure = is_other and counter or redis.error_reply('CONFLICT ' .. keys[COUNTER] .. ' holds no counter')
  end
  local name = {
    keys[LOCK], keys[COUNTER], keys[QUEUE], keys[WAITERS], keys[READ_QUEUE], keys[HOLDERS], keys[VALUE],
    now, nil, counter and true, stored, letters or 'qr', nil, nil, nil, popped, broken,
  }
  return name, failure
end
