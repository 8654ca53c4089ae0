-- watch: makes the other scripts publish each change of a name, for a while. It changes
-- nothing else, and does not remove expired leases or places.
--
-- The channel is the key S with a w as its last letter. The messages are empty.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: >dB: for how long, in microseconds; WAY_PLAIN or WAY_SLOT.
-- Answers: 1, it was watched already; 2, it was not, so a change may have been missed;
--   0, the user may not publish there, so it is not watched.
--
-- redis.calls:
--   half of that time, or more, is left of an earlier watch: TIME GET
--   otherwise: TIME GET SET; before SET, PUBLISH or SPUBLISH if it was not watched, and
--     ZCARD HLEN ZCARD if there are details

--- @include lib/layout
--- @include lib/time
--- @include lib/name
local keep = 0 -- nothing is granted
--- @include lib/entry

local long, way = unpack('>dB', ARGV[1])
local known = ways % (2 * way) >= way
if known and watched - now >= long / 2 then return 1 end
if not known then
  -- Try whether this user may publish, on a channel without subscribers.
  local command = way == WAY_SLOT and 'SPUBLISH' or 'PUBLISH'
  local r = redis.pcall(command, S:sub(1, -2) .. 'w:', '')
  if type(r) == 'table' and r.err then return 0 end
  ways = ways + way
end
count()
watched, changed = math.max(watched, now + long), true
keep_until(watched)
save()
return known and 1 or 2
