-- extend makes the lease of a token last until then, and never shorter.
local function extend(place, token, later)
  if place == 'lease' then
    if later > lease.expires then lease.expires, changed = later, true end
    raise(lease.expires + lease.delay)
  else
    local rec, expires = detail(token)
    local _, _, _, _, delay = unpack('>dI4I4dd', rec, 2)
    if later > expires then
      call('ZADD', E, later, token)
      raise(later + delay)
    end
  end
end
