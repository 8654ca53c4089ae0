-- If the value of the name is not less than a claim's 'below', the claim loses its place.
-- The answer is 'v', >d: the fence under which the value was written; then the value.
local writes, below = wish_of(wish, 1)
if not value_below(below) then
  local refusal = 'v' .. pack('>d', value_fence) .. value
  if place then
    leave(token)
    promote() -- the claim may have been the head, and the next may fit
  end
  save()
  return refusal
end
