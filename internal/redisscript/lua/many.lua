-- many: the quick cases of several steps on as many names, in order. It answers 0 to a
-- step that is not the quick case, and the client then sends that step alone. An error of
-- one step does not end the script, because the others would get no answer.
--
-- KEYS[i]: S of a name.
-- ARGV[1]: the claims' common settings; empty without claims. >ddd: the TTL, how long
--   the name is remembered, and the latest end, in microseconds; then the
--   lock-delay and who claims, as in the argument of one claim.
-- ARGV[1 + i] is for KEYS[i]. Its length shows its kind:
--   16 bytes: c16, a token to release
--   20 bytes: >c16I4, a token to grant one fence to, and by how many microseconds the
--     end of its claim is before the latest end
--   others: the first argument of a script of one name, see lib/claim_args and
--     lib/renew_args
-- Answers: a list of numbers. For each key the answer of its quick case, or 0 if the step
--   is another case; then the server's time in microseconds.
--
-- redis.calls: TIME, and for each step GET and SET

--- @include lib/layout
--- @include lib/time
--- @include lib/quick_acquire
--- @include lib/quick_renew
--- @include lib/quick_release

local ttl, keep, ends, at, holder
if ARGV[1] ~= '' then
  ttl, keep, ends, at = unpack('>ddd', ARGV[1])
  holder = ARGV[1]:sub(at)
end
local answers = {}
for i = 1, #KEYS do
  local S, arg = KEYS[i], ARGV[1 + i]
  local s, n = pcall('GET', S), #arg
  if type(s) == 'table' then
    answers[i] = 0 -- GET failed: the key has another type
  elseif n == 16 then
    answers[i] = quick_release(S, s, now, arg)
  elseif n == 20 then
    local by = ends - unpack('>I4', arg, 17)
    local its = '\0\0\0\1' .. arg:sub(1, 16) .. holder
    answers[i] = quick_acquire(S, s, now, ttl, keep, 0, by, 1, its)
  elseif arg:byte() == QUICK_ACQUIRE then
    local its_ttl, its_keep, min_fence, by, fences = unpack('>ddddI4', arg, 2)
    local its = arg:sub(34)
    answers[i] = quick_acquire(S, s, now, its_ttl, its_keep, min_fence, by, fences, its)
  elseif arg:byte() == QUICK_RENEW then
    answers[i] = quick_renew(S, s, now, arg)
  else
    answers[i] = 0
  end
end
answers[#KEYS + 1] = now
return answers
