call('GETEX', S) -- it changes nothing, but a script that has written may go on when memory is full
settle()
local place, first = stands(token)
local rec, at, weight, limit
local run, own = 1, place == 'lease' or place == 'h'
if place == 'lease' then
  first, run = lease.first, lease.run
elseif place == 'h' then
  rec = detail(token)
  first, weight, limit, at = unpack('>dI4I4', rec, 2)
end
if not own or first >= wanted then
  local said = own and first or gone(token)
  save()
  return said
end

-- It becomes the last one granted: holders stand in the order of their fences, and no number is the fence of two.
if fence > first + run - 1 then wanted = math.max(wanted, fence + 1) end -- others were granted since
if place == 'h' and held > limit then -- after them it could not have been
  save()
  return people('h', 0, false)
end
if wanted + run - 1 >= WAITS then
  save()
  return redis.error_reply('PAWLFENCE there are no fences as high as that')
end
if place == 'lease' then
  lease.first = wanted
else
  call('HSET', D, token, 'h' .. pack('>dI4I4', wanted, weight, limit) .. rec:sub(at))
  call('ZADD', L, wanted, token)
end
fence, changed = wanted + run - 1, true
raise(fence) -- it is remembered until the clock has passed it
save()
return wanted
