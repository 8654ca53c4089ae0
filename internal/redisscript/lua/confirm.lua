-- confirm: renews a lease, and always writes. WAIT counts the replicas that have the
-- writes of its own connection, but another connection may have written the grant.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: the lease, see lib/renew_args.
-- Answers: 1, it is held; otherwise as lib/not_held.
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   an exclusive lease, and no claim waits: TIME GET SET
--   a claim waits: TIME GET GETEX DETAILS; SET
--   a shared lease: TIME GET GETEX DETAILS; ZSCORE, HGET ZSCORE; ZADD; SET
--   nothing is held: TIME GET GETEX

--- @include lib/layout
--- @include lib/time
--- @include lib/name
--- @include lib/quick_renew
--- @include lib/renew_args
--- @include lib/entry
--- @include lib/place
--- @include lib/extend
--- @include lib/not_held
--- @include lib/settled

local place = place_of(token)
local result = 1
if place == 'lease' or place == 'h' then
  extend(place, token, now + ttl)
  changed = true
else
  result = not_held(token)
end
save()
return result
