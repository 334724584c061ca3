-- Names for numbers, marks and forms. The loader writes what stands here in the place of each name, because a local
-- costs every script, and a function that uses one even more: see README.md. So a name stands for one literal, is
-- written in capitals, and occurs in no string.

-- The keys of a name, as they are passed to a script, and as they stand in the table of lib/name.lua.
local LOCK, COUNTER, QUEUE, WAITERS, READ_QUEUE, HOLDERS, VALUE = 1, 2, 3, 4, 5, 6, 7
-- The value's key once more, where those who watch the value hear on a sharded channel of that name.
local CHANNEL = 8
-- What else stands there.
local NOW, CLOCK, IS_COUNTED, STORED, LETTERS, HELD, USED, OF, POPPED, BROKEN, DROPPED, FROM = 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19

-- The arguments of an acquisition, and whether a reader goes before owners that wait for the lock exclusively.
local OWNER, TTL, MODE, HEARTBEAT_WITHIN, INBOX, HEARS_AT, TOKENS_FROM, GOES_FIRST = 1, 2, 3, 4, 5, 6, 7, 8

-- A day in milliseconds: no key but the value's lives for longer after its last use.
local DAY = '86400000'
-- An hour in microseconds.
local HOUR = 3600000000
-- How often a process may hand one lease over among its threads: the same as in `src/base/token.rs`.
local HAND_OVERS = 1024
-- A counter is below 2^53 - 2^12: numbers are exact up to 2^53, so the next tokens are, too.
local LARGEST = 9007199254736896
-- The server's time in microseconds, and so a counter, has so many digits until the year 2286, and is no smaller.
local DIGITS, SMALLEST = 16, 1000000000000000

-- What the lock's key says where it names no exclusive owner: readers have it; permits are out, and how many of how many;
-- or nobody has it, and nobody is let in until it expires.
local MARK_READERS = 'crosslock:readers'
local MARK_PERMITS = 'crosslock:permits'
local MARK_KEPT = 'crosslock:kept'
-- The form of the first two, and of the second with its numbers.
local SHARED = '^crosslock:[rp]'
local PERMITS_OUT = '^crosslock:permits (%d+)(/?%d*)$'

-- The forms of a counter: a number, and a letter for each queue that there may be; of one that names owners whose leases
-- were broken, see lib/broken.lua; and of one where nobody waits to read.
local ANY_COUNTER = '^(%d+)(q?r?)$'
local COUNTER_AND_BROKEN = '^(%d+)(q?r?)(b(%d+) .+)$'
local COUNTER_AND_QUEUE = '^(%d+)q$'
-- The number at its beginning, whatever follows.
local LEADING_NUMBER = '^%d+'

-- The forms of a waiter: when its heartbeat is overdue, the server where it hears (empty where that is always the same), its
-- ttl, its mode and its inbox; of one that wants the lock exclusively and can hear; and of such a one that hears at a server
-- which another may follow.
local ANY_WAITER = '^(%d+)@?(%x*) (%d+) (%S+) (.*)$'
local EXCLUSIVE_WAITER = '^(%d+) (%d+) [xw] (.+)$'
local FOLLOWING_WAITER = '^(%d+)@%x* (%d+) [xw] (.+)$'

-- What marks an inbox that is a sharded channel: the tag of its slot.
local TAG = '{'
-- The server that runs a script, as far as INFO tells it: so much of its run id is kept of where a waiter hears.
local RUN_ID = 'run_id:(%x%x%x%x%x%x%x%x)'

-- The form of an owner, behind whose id is what others may see; and how many characters the id has.
local OWNER_FORM = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x/'
local ID_LENGTH = 36

-- How many waiters one script drops at most: each costs a few commands, and nobody else is served meanwhile.
local MOST_DROPPED = 64

-- How many holders, and how many waiters of each queue, are told to those who look at a name.
local MOST_SHOWN = 1000

-- The keys of a delay queue.
local TASKS, DUE, ENDS, WORKERS, LINE, WAITING, FINISHED = 1, 2, 3, 4, 5, 6, 7
-- A task as TASKS has it: what is shown of it, all but its error and payload, and what a worker that takes it
-- changes; a worker that has a task; and one that waits.
local SHOWN = '^%d+ %d+ %d+ %S+ (.*)$'
local TASK_HEAD = '^(%d+) (%d+) (%d+) (%S+) (%d+) ([01]) (%d+) (%d+) (%d+) ()'
local TO_TAKE = '^(%d+)( %d+ %d+ %S+ )(%d+) ([01])( .*)$'
local HAS_TASK = '^(%d+) (%d+) (.*)$'
local IN_LINE = '^(%S+) (%d+) (.*)$'
-- From this time on, in microseconds, a task in DUE is a buried one: it was buried at the time behind it. 2^52.
local BURIED_FROM = 4503599627370496
-- How many workers one script calls at most, and how many leases it ends, or waiting workers it drops.
local MOST_CALLED, MOST_ENDED = 16, 64
