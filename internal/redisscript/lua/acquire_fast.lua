-- Nearly every claim is an exclusive one for a name that is free: then state.lua is not needed, whose functions
-- would be made anew in every run. redis.calls: TIME, GET, SET.
local flags, token, ttl, delay, keep, wish, at = unpack('>Bc16dddd', ARGV[1])
if wish > now + 250000 then wish = now + 250000 end -- driver.MaxLead
local who = ARGV[2]
if flags % 2 == 1 and flags < 4 and s and #s == 26 then
  local v, f, fence, closed, till = unpack('>BBddd', s)
  if v == 161 and f == 0 and closed <= now and fence >= 0 and fence < 4503599627370496 and till < 9007199254740992 then
    local first = fence + 1
    if first < now then first = now end
    if first < wish then first = wish end
    local expires = now + ttl
    local need = expires + delay
    if need < now + keep then need = now + keep end
    if first < 4503599627370496 then
      if till < need then
        till = need + keep / 8
        call('SET', S, pack('>BBdddc16dI4ddd', 161, 1, first, 0, till, token, first, 1, now, expires, delay) .. who,
          'PX', math.ceil((till - now) / 1000))
      else
        call('SET', S, pack('>BBdddc16dI4ddd', 161, 1, first, 0, till, token, first, 1, now, expires, delay) .. who, 'KEEPTTL')
      end
      return first
    end
  end
end
local wait, weight, limit, run = unpack('>dI4I4I4', ARGV[1], at)
local queueing, force = flags % 4 >= 2, flags % 8 >= 4
