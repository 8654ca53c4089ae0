-- The arguments of a claim, and its quick case.
--
-- ARGV[1]: the claim. The first byte is QUICK_ACQUIRE if lib/quick_acquire may grant it;
--   then >ddddI4c16d: the TTL; how long the name is remembered; the least fence to
--   grant; the end of the request; how many fences; the token; the lock-delay; then
--   who claims, to the end. An exclusive holder is stored as the bytes from 34 on,
--   which begin with the number of fences.
-- ARGV[2]: how it waits, >BdI4I4d: 1 if it queues; how long its place lasts if it does
--   not ask again; weight; limit; its ticket or 0.
--
-- One more argument is the wish of the claim, see lib/value. A claim with a wish is never
-- the quick case.
--
-- Instants and durations are microseconds; instants are on the server's clock.
local ttl, keep, min_fence, ends, fences, token, delay, at =
  unpack('>ddddI4c16d', ARGV[1], 2)
if ARGV[1]:byte() == QUICK_ACQUIRE then
  local holder = ARGV[1]:sub(34)
  local first = quick_acquire(S, s, now, ttl, keep, min_fence, ends, fences, holder)
  if first ~= 0 then return first end
end
if not (now <= ends) then return -now end
local who = ARGV[1]:sub(at)
local queueing, wait, weight, limit, ticket = unpack('>BdI4I4d', ARGV[2])
if min_fence > now + MAX_LEAD then min_fence = now + MAX_LEAD end
