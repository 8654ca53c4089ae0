-- The stored state of a name, and the constants of all scripts. No line of this file is
-- sent: a line `local NAME = literal` is a constant, and its value replaces the name
-- wherever a script uses it. So a constant costs nothing, and no function of a script has
-- to capture it.
--
-- A name that is only locked and released is one string. The other three keys, the
-- details, exist while a claim shares it or waits for it, or a holder has yet to learn
-- that its lease was broken.
--
--   S  string: the state
--        HEAD     version; flags: 1 there is an exclusive holder, 2 there are details,
--                 4 there is a value, WAY_PLAIN and WAY_SLOT the name is watched;
--                 the last fence; closed until (lock-delay); S is kept until
--        DETAILS  if there are details: D, L and E are kept until; the sum of the
--                 weights of the shared holders; how many shared holders there are; how
--                 many broken leases; the earliest possible end of a detail; the latest
--                 possible end of a shared lease with its lock-delay
--        LEASE    if there is an exclusive holder: when it expires; since when it holds;
--                 how many fences it has; its token; its lock-delay; then who it is. Its
--                 fences are the last ones granted.
--        VALUE    if there is a value: its bytes; then the fence under which it was
--                 written, and its length
--        WATCHED  if it is watched: until when
--   D  hash: the record of each member
--        'h' HOLDER  a shared holder: fence, weight, limit, since, lock-delay; then who
--                    it is. 'H' if it has written a value
--        'w' WAITER  a waiter: how many fences it wants, weight, limit, since,
--                    lock-delay; then its wish, see lib/value; then who it is
--        of a broken lease: the owner who broke it, as locktable.AppendOwner writes it
--   L  sorted set, the order: first the broken, by time (scores below 0); then the shared
--      holders, by fence; then the waiters, by arrival (scores from QUEUE_FROM)
--   E  sorted set: when each member expires. The broken, the shared holders
--      and the waiters are separate, as in L, so that one call finds the first holder:
--      QUEUE_FROM is subtracted from the scores of the broken, and added to the scores
--      of the waiters
--
-- The members of D, L and E are the same: a token; 'l' and the fence (>d) for a shared
-- lease that was released, and is kept for its minimum hold; 'b' and a token for a broken
-- lease. An exclusive lease that is kept for its minimum hold has the token ZERO.
--
-- Who a claimant is: the channel for its signals, and the one in the slot of the name,
-- with its length (>I2) before each; then its owner, as locktable.AppendOwner writes it;
-- then the TTL that it asked for last, the only part that a script changes.
--
-- A name that keeps a value, or is watched, is not the quick case of any script. So
-- values and watches cost other names nothing.
--
-- S decides: if it is missing, no lease exists; if it says that there are no details,
-- there are none. Instants and durations are microseconds. Numbers are doubles, because
-- Lua has no others: exact up to 2^53.

local VERSION = 165
local HEAD = '>BBddd'
local HEAD_SIZE = 26
local DETAILS = '>ddI4I4dd'
local VALUE = '>dI2'
local WATCHED = '>d'
local LEASE = '>ddI4c16d'
local HEAD_AND_TIMES = '>BBddddd'
local HEAD_TO_TOKEN = '>BBdddddI4c16'
local HEAD_AND_LEASE = '>BBdddddI4c16d'
local HEAD_AND_LEASE_SIZE = 70
local HOLDER = '>dI4I4dd'
local WAITER = '>I4I4I4dd'
local NO_WISH = '\0\0\0\0'
local ZERO = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

-- Scores of waiters begin at 2^52, so all fences are below. Instants are below 2^53.
local QUEUE_FROM = 4503599627370496
local NEVER = 9007199254740992

-- The values of driver.Exclusive, driver.MaxLead, and the kinds of signals in Go.
local EXCLUSIVE = 2147483647
local MAX_LEAD = 250000
local SIGNAL_RETRY = 0
local SIGNAL_GRANTED = 1
local SIGNAL_LOST = 2

-- A script publishes changes on a channel of the whole server, or of the slot of the
-- name.
local WAY_PLAIN = 8
local WAY_SLOT = 16

-- The first byte of an argument is the kind of the step, see wire_arguments.go.
local QUICK_ACQUIRE = 97  -- 'a'
local QUICK_RENEW = 114   -- 'r'
local VALUE_RENEW = 82    -- 'R'
local QUICK_RELEASE = 101 -- 'e'
local TIMED_RELEASE = 79  -- 'O'
