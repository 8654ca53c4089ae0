-- The argument of a renewal, and its quick case.
--
-- ARGV[1]: QUICK_RENEW, or VALUE_RENEW if it writes a value; then >ddc16: the TTL and how
--   long the name is remembered, in microseconds, and the token.
if ARGV[1]:byte() == QUICK_RENEW and quick_renew(S, s, now, ARGV[1]) > 0 then return 1 end
local ttl, keep, token = unpack('>ddc16', ARGV[1], 2)
