-- bury takes a lease from its holder, and leaves word for it.
local function bury(token, who, expires, by)
  if #token ~= 16 or token == ZERO then return end
  if broken >= 256 then
    forget(call('ZRANGE', L, 0, 0)[1])
    broken = broken - 1
  end
  broken = broken + put('b' .. token, now - WAITS, by, expires)
  raise(expires)
  signal(who, LOST, token, 0, 0)
end

local function take(id, by)
  changed = true
  if not id then
    local l = lease
    lease = nil
    return bury(l.token, l.who, l.expires, by)
  end
  local rec, expires = detail(id)
  local _, weight, _, _, _, at = unpack('>dI4I4dd', rec, 2)
  held, holders = held - weight, holders - 1
  forget(id)
  bury(id, rec:sub(at), expires, by)
end
