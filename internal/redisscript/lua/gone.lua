-- gone says why a token holds nothing, as far as it is known.
local function gone(token)
  local by = size > 0 and call('HGET', D, 'b' .. token)
  if not by then return 0 end
  return 'b' .. pack('>d', math.max(0, closed - now)) .. by
end
