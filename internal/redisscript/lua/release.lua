call('GETEX', S) -- it changes nothing, but a script that has written may go on when memory is full
settle()
local place = stands(token)
local said = 1
if place == 'lease' then
  local ends = math.min(lease.since, now) + minHold -- now may be earlier, if the clock ran back
  if ends > now then
    -- It ends as a release does: with no lock-delay, and for nobody to renew.
    lease.token, lease.delay, lease.expires = ZERO, 0, ends
    raise(ends)
  else
    lease = nil
  end
  changed = true
elseif place == 'h' then
  local rec = detail(token)
  local first, weight, limit, since, _, at = unpack('>dI4I4dd', rec, 2)
  local ends = math.min(since, now) + minHold
  forget(token)
  if ends > now then
    put('l' .. pack('>d', first), first, 'h' .. pack('>dI4I4dd', first, weight, limit, since, 0) .. rec:sub(at), ends)
    raise(ends)
  else
    held, holders = held - weight, holders - 1
  end
  changed = true
elseif place == 'w' then
  forget(token)
else
  said = gone(token)
end
promote()
save()
return said
