-- Where it would stand in the line: as if it had come at its ticket, but no more than driver.MaxLead before it did,
-- and behind those who came no later. In a line time never runs back.
local score, last, ahead = WAITS + now, nil, size > holders + broken
if queueing == 1 and not place then
  if ahead then last = tonumber(call('ZRANGE', L, '-1', '-1', 'WITHSCORES')[2]) end
  if last and last > score then score = last end
  if ticket > 0 and WAITS + ticket < score then
    score = math.max(WAITS + ticket, score - 250000)
    if last then
      local at = tostring(broken + holders)
      ahead = tonumber(call('ZRANGE', L, at, at, 'WITHSCORES')[2]) <= score
      while call('ZRANGEBYSCORE', L, score, score)[1] do score = score + 1 end
    end
  elseif score == last then
    score = last + 1
  end
end

if not ahead and closed <= now and not lease and held + weight <= limit then
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
    local since = ticket > 0 and score - WAITS or now
    put(token, score, 'w' .. pack('>I4I4I4dd', run, weight, limit, since, delay) .. who, now + wait)
    position = size - broken - holders
    if last and last > score then position = call('ZRANK', L, token) - broken - holders + 1 end
    if position == 1 then head = now + wait end
  end
  raise(now + wait)
end
if place then position = call('ZRANK', L, token) - broken - holders + 1 end
save()
return people('h', position, false, head)
