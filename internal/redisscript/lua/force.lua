if place then forget(token) end
local by = ARGV[3]
if lease then take(nil, by) end
if holders > 0 then
  for _, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do take(id, by) end
end
closed = 0
local first, given = grant(token, weight, limit, run, now + ttl, delay, who, wish)
promote() -- beside a forced claim that is not exclusive, the head of the queue may fit
save()
return answer(first, given)
