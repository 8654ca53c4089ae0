-- quick_acquire grants an exclusive claim if its name is free, and nobody waits for it; otherwise it answers 0, and
-- has done nothing. One that came after its end is told the time, as a number below 0. Nearly every claim ends here.
-- holder is what is stored of it: run, token, lock-delay and who. redis.calls: SET.
local function quick_acquire(S, s, now, ttl, keep, wish, ends, run, holder)
  if not (now <= ends) then return -now end
  local fence, till = 0, 0
  if s then
    if #s ~= 26 then return 0 end
    local v, f, closed
    v, f, fence, closed, till = unpack('>BBddd', s)
    if v ~= 161 or f ~= 0 or not (closed <= now and fence >= 0 and till >= 0 and till < 9007199254740992) then return 0 end
  end
  local first = fence + 1
  if first < now then first = now end
  if first < wish then
    if wish > now + 250000 then wish = now + 250000 end -- driver.MaxLead
    if first < wish then first = wish end
  end
  fence = first + run - 1
  if fence >= 4503599627370496 then return 0 end
  local r
  local least = now + keep -- as in grant: it is remembered until the clock has passed its fence, too
  if least < fence then least = fence end
  if till < least then
    till = math.ceil(least + keep / 8)
    local state = pack('>BBddddd', 161, 1, fence, 0, till, now + ttl, now) .. holder
    r = pcall('SET', S, state, 'PX', math.ceil((till - now) / 1000))
  else
    r = pcall('SET', S, pack('>BBddddd', 161, 1, fence, 0, till, now + ttl, now) .. holder, 'KEEPTTL')
  end
  return r.err and 0 or first
end
