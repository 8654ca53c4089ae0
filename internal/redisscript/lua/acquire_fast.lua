-- Nearly every claim is an exclusive one for a name that is free: then state.lua is not needed, whose functions
-- would be made anew in every run. redis.calls: TIME, GET, SET, and EXISTS to arm tracking.
local token, ttl, wait, weight, limit, run, delay, flags, keep = unpack('>c16ddI4I4I4dBd', ARGV[1])
local who = ARGV[2]
local queueing, force, arm = flags % 2 == 1, flags % 4 >= 2, flags >= 4
if s and #s == 26 and weight == 2147483647 then
  local v, f, fence, closed, till = unpack('>BBddd', s)
  if v == 161 and f == 0 and closed <= now and fence >= 0 and fence < 4503599627370496 and till < 9007199254740992 then
    local first = fence + 1
    if first < now then first = now end
    fence = first + run - 1
    local expires = now + ttl
    local need = expires + delay
    if need < now + keep then need = now + keep end
    if till < need then till = need end
    if fence < 4503599627370496 then
      redis.call('SET', S,
        pack('>BBdddc16dI4ddd', 161, 1, fence, 0, till, token, first, run, now, expires, delay) .. who,
        'PX', math.ceil((till - now) / 1000))
      if arm then redis.call('EXISTS', S) end
      if run == 1 then return first end
      return 'g' .. pack('>dI4', first, run)
    end
  end
end
