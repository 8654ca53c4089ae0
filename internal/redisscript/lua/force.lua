-- force: a claim that is granted at once, even if the name is held. It ends the leases of
-- other holders, and notifies these holders.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: the claim, see lib/claim_args; ARGV[2]: how it would wait, see there; ARGV[3]:
--   who takes the leases, as locktable.AppendOwner writes it; ARGV[4], if there is one:
--   its wish, see lib/value.
-- Answers: a number, 'g' or 'v', as acquire.
--
-- redis.calls:
--   the name is free: TIME GET SET
--   held by another: TIME GET; UNLINK HSET ZADD ZADD to store who took it;
--     PUBLISH; 3 PEXPIRE SET
--   more for each shared holder: HGET ZSCORE; HDEL ZREM ZREM; HSET ZADD ZADD; PUBLISH

--- @include lib/layout
--- @include lib/time
--- @include lib/name
--- @include lib/quick_acquire
--- @include lib/claim_args
--- @include lib/entry
--- @include lib/place
--- @include lib/extend
--- @include lib/asked_again
--- @include lib/take
local wish = ARGV[4] or NO_WISH
--- @include lib/refused

if place then remove(token) end
local by = ARGV[3]
if lease then take(nil, by) end
if holders > 0 then
  for _, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do take(id, by) end
end
closed = 0
local expires = now + ttl
local first, given = grant(token, weight, limit, fences, expires, delay, who,
  min_fence, writes)
promote() -- beside a forced claim that is not exclusive, the head of the queue may fit
save()
return answer(first, given)
