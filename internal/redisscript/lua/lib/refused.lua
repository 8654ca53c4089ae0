-- A claim that has to be above the value of the name, and is not, loses its place, and is
-- refused with 'v', >d: the fence under which the value was written; and the value.
local writes, above = wish_of(wish, 1)
if not is_above(above) then
  local refusal = 'v' .. pack('>d', value_fence) .. value
  if place then
    leave(token)
    promote() -- it may have been the head, and the next one fits
  end
  save()
  return refusal
end
