-- extend makes the lease of a token last until 'later', and never shortens it. It stores
-- the time from now until 'later' as the TTL, in the last 8 bytes of who the holder is.
local function extend(place, token, later)
  local ttl = pack('>d', later - now)
  if place == 'lease' then
    if later > lease.expires then lease.expires, changed = later, true end
    if lease.who:sub(-8) ~= ttl then
      lease.who, changed = lease.who:sub(1, -9) .. ttl, true
    end
    keep_until(lease.expires + lease.delay)
  else
    local rec, expires = record(token)
    local _, _, _, _, delay = unpack(HOLDER, rec, 2)
    if rec:sub(-8) ~= ttl then call('HSET', D, token, rec:sub(1, -9) .. ttl) end
    if later > expires then
      call('ZADD', E, later, token)
      keep_until(later + delay)
      leased(later + delay)
    end
  end
end
