-- A caller that lost the answer sends its claim again, and so does a waiter to which
-- another client has passed the name. Such a claim still has its lease or its place.

-- answer returns the first fence alone if the grant has all fences that were asked for.
local function answer(first, given)
  if given == fences then return first end
  return 'g' .. pack('>dI4', first, given)
end

settle()

local place, score = place_of(token)
if place == 'lease' or place == 'h' then
  extend(place, token, now + ttl)
  save()
  if place == 'h' then return score end
  return answer(lease.first, lease.fences)
end
