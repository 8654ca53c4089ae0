if size == holders + broken and closed <= now and not lease and held + weight <= limit then
  local first, given = grant(token, weight, limit, run, now + ttl, delay, who, wish)
  save()
  return answer(first, given)
end

local position, head = 0, nil
if queueing == 1 then
  if place then
    local rec = detail(token)
    if unpack('>I4', rec, 2) ~= run then call('HSET', D, token, 'w' .. pack('>I4', run) .. rec:sub(6)) end
    call('ZADD', E, 'GT', now + wait, token)
  else
    local behind = 0
    if size > 0 then behind = tonumber(call('ZRANGE', L, '-1', '-1', 'WITHSCORES')[2] or 0) + 1 end
    put(token, math.max(WAITS + now, behind), 'w' .. pack('>I4I4I4dd', run, weight, limit, now, delay) .. who, now + wait)
    position = size - broken - holders
    if position == 1 then head = now + wait end
  end
  raise(now + wait)
end
if place then position = call('ZRANK', L, token) - broken - holders + 1 end
save()
return people('h', position, false, head)
