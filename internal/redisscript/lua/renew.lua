-- renew: extends a lease; never shortens it. It restores the expiry of the keys if
-- another client has changed it.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: the lease, see lib/renew_args.
-- ARGV[2], if there is one: >d, the end of the request; then the value that the name
--   keeps from then on.
-- Answers: 1, renewed; below 0, the server's time, negated: too late, after its end;
--   otherwise as lib/not_held.
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   an exclusive lease, and no claim waits: TIME GET SET
--   a claim waits: TIME GET GETEX DETAILS; 4 PTTL; SET
--   a shared lease: TIME GET GETEX DETAILS; ZSCORE, HGET ZSCORE; ZADD; 4 PTTL; once in
--     half a TTL SET; HSET besides if its TTL has changed
--   nothing is held: TIME GET GETEX

--- @include lib/layout
--- @include lib/time
--- @include lib/name
--- @include lib/quick_renew
--- @include lib/renew_args
if ARGV[2] and not (now <= unpack('>d', ARGV[2])) then return -now end
--- @include lib/entry
--- @include lib/place
--- @include lib/extend
--- @include lib/not_held
--- @include lib/restore_ttl
--- @include lib/settled

local place, first = place_of(token)
local result = 1
if place == 'lease' or place == 'h' then
  extend(place, token, now + ttl)
  if ARGV[2] then
    write(ARGV[2]:sub(9), first or lease.first)
    if first then call('HSET', D, token, 'H' .. record(token):sub(2)) end
  end
  restore_ttl(S, kept_until)
  if size > 0 then
    restore_ttl(D, details_until)
    restore_ttl(L, details_until)
    restore_ttl(E, details_until)
  end
else
  result = not_held(token)
end
save()
return result
