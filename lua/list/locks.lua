-- Says which of some keys are locks, in the empty namespace, where other programs have keys, too. Only what crosslock wrote
-- is known for a lock there: a client that isn't crosslock leaves any text.
--
-- KEYS  keys that hold strings
--
-- Returns 1 for each that is a lock, else 0

local answers = {}
for at, key in ipairs(KEYS) do
  -- Not more of it than it takes: it may be long.
  local text = redis.pcall('GETRANGE', key, '0', ID_LENGTH)
  text = type(text) == 'string' and text or ''
  answers[at] = (string.find(text, OWNER_FORM) or string.find(text, SHARED) or text == MARK_KEPT) and 1 or 0
end
return answers
