-- not_held returns the answer if a token holds no lease: 0; or, if its lease was broken,
-- 'b', >d: how long the name stays closed, in microseconds, and who broke the lease.
local function not_held(token)
  local by = size > 0 and call('HGET', D, 'b' .. token)
  if not by then return 0 end
  return 'b' .. pack('>d', math.max(0, closed - now)) .. by
end
