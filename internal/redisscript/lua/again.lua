-- A grant of as many fences as were asked for is told by the first.
local function answer(first, given)
  if given == run then return first end
  return 'g' .. pack('>dI4', first, given)
end

settle()

-- Asked again: by a caller that lost the reply, or by a waiter that settle, or somebody before, promoted.
local place, score = stands(token)
if place == 'lease' or place == 'h' then
  extend(place, token, now + ttl)
  save()
  if place == 'h' then return score end
  return answer(lease.first, lease.run)
end
