-- take ends the exclusive lease if id is nil, otherwise the lease of the member id of L.
-- 'by' is the owner who ends it. leave_word notifies the holder, and keeps 'by' in the
-- details until the lease would have expired.
local function leave_word(token, who, expires, by)
  if #token ~= 16 or token == ZERO then return end
  if broken >= 256 then
    remove(call('ZRANGE', L, 0, 0)[1])
    broken = broken - 1
  end
  broken = broken + put('b' .. token, now - QUEUE_FROM, by, expires)
  keep_until(expires)
  signal(who, SIGNAL_LOST, token, 0, 0)
end

local function take(id, by)
  changed, news = true, true
  if not id then
    local l = lease
    lease = nil
    return leave_word(l.token, l.who, l.expires, by)
  end
  local rec, expires = record(id)
  local _, weight, _, _, _, at = unpack(HOLDER, rec, 2)
  held, holders = held - weight, holders - 1
  remove(id)
  leave_word(id, rec:sub(at), expires, by)
end
