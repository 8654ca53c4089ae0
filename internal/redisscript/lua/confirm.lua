-- As renew, but always a write, as quick_renew is too: WAIT asks for what its connection has written, and this stands for
-- the grant, which another one may have made.
call('GETEX', S) -- it changes nothing, but a script that has written may go on when memory is full
settle()
local place = stands(token)
local said = 1
if place == 'lease' or place == 'h' then
  extend(place, token, now + ttl)
  changed = true
else
  said = gone(token)
end
save()
return said
