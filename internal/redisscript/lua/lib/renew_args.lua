-- The argument of a renewal, and its quick case.
--
-- ARGV[1]: QUICK_RENEW, then >ddc16: the TTL and how long the name is remembered, in
--   microseconds, and the token.
if quick_renew(S, s, now, ARGV[1]) > 0 then return 1 end
local ttl, keep, token = unpack('>ddc16', ARGV[1], 2)
