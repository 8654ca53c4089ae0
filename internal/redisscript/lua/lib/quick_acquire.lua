-- quick_acquire grants an exclusive claim if its name is free and no claim waits;
-- otherwise it answers 0, and changes nothing. To a claim that came after its end it
-- answers the time, negated. Most claims end here. 'holder' is the part of the claim that
-- is stored: how many fences, token, lock-delay and who. redis.calls: SET.
local function quick_acquire(S, s, now, ttl, keep, min_fence, ends, fences, holder)
  if not (now <= ends) then return -now end
  local fence, kept_until = 0, 0
  if s then
    if #s ~= HEAD_SIZE then return 0 end
    local v, f, closed
    v, f, fence, closed, kept_until = unpack(HEAD, s)
    if v ~= VERSION or f ~= 0 then return 0 end
    if not (closed <= now and fence >= 0 and kept_until >= 0 and kept_until < NEVER) then
      return 0
    end
  end
  local first = fence + 1
  if first < now then first = now end
  if first < min_fence then
    if min_fence > now + MAX_LEAD then min_fence = now + MAX_LEAD end
    if first < min_fence then first = min_fence end
  end
  fence = first + fences - 1
  if fence >= QUEUE_FROM then return 0 end
  -- As in grant: the name is remembered until the clock has passed its fence, too.
  local r
  local least = now + keep
  if least < fence then least = fence end
  if kept_until < least then
    kept_until = math.ceil(least + keep / 8)
    s = pack(HEAD_AND_TIMES, VERSION, 1, fence, 0, kept_until, now + ttl, now) .. holder
    r = pcall('SET', S, s, 'PX', math.ceil((kept_until - now) / 1000))
  else
    s = pack(HEAD_AND_TIMES, VERSION, 1, fence, 0, kept_until, now + ttl, now) .. holder
    r = pcall('SET', S, s, 'KEEPTTL')
  end
  return r.err and 0 or first
end
