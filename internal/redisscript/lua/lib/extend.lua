-- extend makes the lease of a token last until then, and never shorter.
local function extend(place, token, later)
  if place == 'lease' then
    if later > lease.expires then lease.expires, changed = later, true end
    keep_until(lease.expires + lease.delay)
  else
    local rec, expires = record(token)
    local _, _, _, _, delay = unpack(HOLDER, rec, 2)
    if later > expires then
      call('ZADD', E, later, token)
      keep_until(later + delay)
      leased(later + delay)
    end
  end
end
