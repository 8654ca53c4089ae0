call('GETEX', S) -- it changes nothing, but a script that has written may go on when memory is full
settle()
local place = stands(token)
local said = 1
if place == 'lease' or place == 'h' then
  extend(place, token, now + ttl)
  lasts(S, till)
  if size > 0 then
    lasts(D, kept)
    lasts(L, kept)
    lasts(E, kept)
  end
else
  said = gone(token)
end
save()
return said
