-- shown encodes for Go the shared holder with the member id of L, or without id the
-- exclusive holder, >dI4I4I4dddBI4: fence; how many; weight; limit; since; expires;
-- lock-delay; 1 if the lease is only kept for its minimum hold; the length of who it is;
-- then who it is. It also returns the end of the lease and its lock-delay.
local function shown(id)
  if not id then
    local kept = lease.token == ZERO and 1 or 0
    local text = pack('>dI4I4I4dddBI4', lease.first, lease.fences, EXCLUSIVE, EXCLUSIVE,
      lease.since, lease.expires, lease.delay, kept, #lease.who) .. lease.who
    return text, lease.expires + lease.delay
  end
  local rec, expires = record(id)
  local first, weight, limit, since, delay, at = unpack(HOLDER, rec, 2)
  local text = pack('>dI4I4I4dddBI4', first, 1, weight, limit, since, expires, delay,
    #id ~= 16 and 1 or 0, #rec - at + 1) .. rec:sub(at)
  return text, expires + delay
end
