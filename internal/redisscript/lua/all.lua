-- all: claims several names, without queueing or force, and grants all claims, or none.
-- It first examines each name, and passes it on if its lease has expired, as every step
-- does. Then it grants the claims.
--
-- KEYS: S, D, L and E of each name in turn, see lib/layout.
-- ARGV: three for each name in turn: the claim and how it waits, see lib/claim_args; and
--   its wish, see lib/value. The claims are not quick cases, and share one end.
-- Answers:
--   a list of numbers: granted; the fence of each claim
--   a number below 0: the claims came after their end; the server's time, negated
--   'r' and >I4: refused; how many claims precede the first refused one; then the answer
--     of acquire to that claim
--
-- redis.calls:
--   the names are free, and no claim waits: TIME; for each GET SET
--   one is held: TIME; GET for each name up to that one
--   more, as in acquire, if a lease or a place has expired, or there are details

--- @include lib/layout
--- @include lib/time
--- @include lib/quick_acquire

-- look does the first half for one name. It returns the second half as a function, or the
-- answer if it is known: the fence that the token already has, or a refusal.
local function look(KEYS, ARGV)
  --- @include lib/name
  --- @include lib/claim_args
  --- @include lib/entry
  --- @include lib/place
  --- @include lib/extend
  --- @include lib/asked_again
  --- @include lib/refusal
  local wish = ARGV[3]
  --- @include lib/refused
  save()
  if size > holders + broken or closed > now or lease or held + weight > limit then
    return refusal(0, weight, limit)
  end
  return function()
    local first = grant(token, weight, limit, 1, now + ttl, delay, who, min_fence, writes)
    save()
    return first
  end
end

local answers = {}
for i = 1, #KEYS / 4 do
  local k, a = 4 * i, 3 * i
  local answer = look({ KEYS[k - 3], KEYS[k - 2], KEYS[k - 1], KEYS[k] },
    { ARGV[a - 2], ARGV[a - 1], ARGV[a] })
  local kind = type(answer)
  if kind == 'number' and answer < 0 then return answer end
  if kind == 'string' then
    if answer:sub(1, 1) ~= 'g' then return 'r' .. pack('>I4', i - 1) .. answer end
    answer = unpack('>d', answer, 2)
  end
  answers[i] = answer
end
for i, answer in ipairs(answers) do
  if type(answer) == 'function' then answers[i] = answer() end
end
return answers
