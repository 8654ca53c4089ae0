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

local first, given
if force then
  if place then forget(token) end
  local by = ARGV[3]
  if lease then take(nil, by) end
  if holders > 0 then
    for _, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do take(id, by) end
  end
  closed = 0
  first, given = grant(token, weight, limit, run, now + ttl, delay, who, wish)
  promote() -- beside a forced claim that is not exclusive, the head of the queue may fit
elseif size == holders + broken and closed <= now and not lease and held + weight <= limit then
  first, given = grant(token, weight, limit, run, now + ttl, delay, who, wish)
end
if first then
  save()
  return answer(first, given)
end

local position = 0
if queueing then
  if place then
    local rec = detail(token)
    if unpack('>I4', rec, 2) ~= run then call('HSET', D, token, 'w' .. pack('>I4', run) .. rec:sub(6)) end
    call('ZADD', E, 'GT', now + wait, token)
  else
    local behind = tonumber(call('ZRANGE', L, -1, -1, 'WITHSCORES')[2] or 0) + 1
    put(token, math.max(WAITS + now, behind), 'w' .. pack('>I4I4I4dd', run, weight, limit, now, delay) .. who, now + wait)
    position = size - broken - holders
  end
  raise(now + wait)
end
if place then position = call('ZRANK', L, token) - broken - holders + 1 end
save()
return people('h', position, false)
