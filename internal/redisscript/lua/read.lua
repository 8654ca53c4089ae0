-- read: describes a name for people. It changes nothing, and Go leaves out what has
-- expired.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name: enough unless there are details.
-- ARGV: none.
-- Answers: 'e' and a snapshot with all who wait, see lib/snapshot.
--
-- redis.calls:
--   an exclusive lease or none, and nobody waits: TIME GET
--   else: TIME GET ZCARD; ZRANGE if it is shared; ZRANGE if somebody waits; HGET and
--     ZSCORE for each

--- @include lib/layout
--- @include lib/time
--- @include lib/name
local keep = 0 -- nothing is granted
--- @include lib/entry
--- @include lib/snapshot

count()
return snapshot('e', 0, true)
