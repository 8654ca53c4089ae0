-- acquire: an exclusive or shared claim that is not forced. It is granted, refused, or
-- waits in the queue.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: the claim, and ARGV[2]: how it waits, see lib/claim_args for both; ARGV[3], if
--   there is one: its wish, see lib/value.
-- Answers:
--   a number above 0: granted all fences asked for, and this is the first of them
--   a number below 0: the claim came after its end; the server's time, negated
--   'g' and >dI4: granted; the first fence, and how many there are
--   'h', see lib/refusal: refused, or queued at the position in the answer
--   'v', see lib/refused: refused because of the value of the name
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   the name is free, and no claim waits: TIME GET SET
--   held, and the claim does not queue: TIME GET
--   held, and the claim is the first in the queue: TIME GET; UNLINK HSET ZADD ZADD; 3
--     PEXPIRE SET
--   shared, and the name is free: TIME GET; UNLINK HSET ZADD ZADD; 3 PEXPIRE SET
--   shared, beside others: TIME GET DETAILS; ZSCORE; HSET ZADD ZADD; SET
--   asked again by a shared holder: TIME GET DETAILS; ZSCORE, HGET ZSCORE; ZADD
--   the claim queues behind others: TIME GET DETAILS; ZSCORE, ZRANGE; HSET ZADD ZADD
--   the claim waits, and asks again: TIME GET DETAILS; ZSCORE, HGET ZSCORE; ZADD ZRANK
--   refused or queued beside shared holders: ZRANGEBYSCORE HGET ZSCORE more; and ZRANGE
--     ZSCORE if the claim would fit beside them
--   a ticket puts the claim among others: two calls more, and one for each equal score

--- @include lib/layout
--- @include lib/time
--- @include lib/name
--- @include lib/quick_acquire
--- @include lib/claim_args
--- @include lib/entry
--- @include lib/place
--- @include lib/extend
--- @include lib/asked_again
--- @include lib/refusal
local wish = ARGV[3] or NO_WISH
--- @include lib/refused

-- The score of the claim in L is now, or one above the last waiter's if the clock ran
-- back. An earlier ticket lowers the score, by MAX_LEAD at most. The claim then goes
-- behind all waiters with the same score.
local score, last, ahead = QUEUE_FROM + now, nil, size > holders + broken
if queueing == 1 and not place then
  if ahead then last = tonumber(call('ZRANGE', L, '-1', '-1', 'WITHSCORES')[2]) end
  if last and last > score then score = last end
  if ticket > 0 and QUEUE_FROM + ticket < score then
    score = math.max(QUEUE_FROM + ticket, score - MAX_LEAD)
    if last then
      local at = tostring(broken + holders)
      ahead = tonumber(call('ZRANGE', L, at, at, 'WITHSCORES')[2]) <= score
      while call('ZRANGEBYSCORE', L, score, score)[1] do score = score + 1 end
    end
  elseif score == last then
    score = last + 1
  end
end

if not ahead and closed <= now and not lease and held + weight <= limit then
  local expires = now + ttl
  local first, given = grant(token, weight, limit, fences, expires, delay, who,
    min_fence, writes)
  save()
  return answer(first, given)
end

local position, head = 0, nil
if queueing == 1 then
  if place then
    local rec = record(token)
    local _, _, _, since, _, rest = unpack(WAITER, rec, 2)
    _, _, rest = wish_of(rec, rest)
    local new = 'w' .. pack(WAITER, fences, weight, limit, since, delay) .. wish
      .. rec:sub(rest, -9) .. who:sub(-8) -- the TTL of this claim
    if new ~= rec then
      call('HSET', D, token, new)
      news = true
    end
    call('ZADD', E, 'GT', QUEUE_FROM + now + wait, token)
  else
    local since = ticket > 0 and score - QUEUE_FROM or now
    local rec = 'w' .. pack(WAITER, fences, weight, limit, since, delay) .. wish .. who
    put(token, score, rec, now + wait)
    position = size - broken - holders
    if last and last > score then
      position = call('ZRANK', L, token) - broken - holders + 1
    end
    if position == 1 then head = now + wait end
  end
  keep_until(now + wait)
end
if place then position = call('ZRANK', L, token) - broken - holders + 1 end
if position == 1 then new_head = false end -- the answer has the time at which it opens
save()
return refusal(position, weight, limit, head)
