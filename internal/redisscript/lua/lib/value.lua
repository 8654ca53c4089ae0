-- The value that a name keeps: `value`, or nil, and the fence under which it was written.
-- It stands in S.
--
-- A wish is what a claim writes as the value, and what value it has to be above, both as
-- it is sent and as it is stored of a waiter: >I2I2, the lengths of the two, each plus
-- one, 0 if it is missing; then the two.
local function wish_of(s, at)
  local n, m, from = unpack('>I2I2', s, at)
  local writes, above
  if n > 0 then
    writes = s:sub(from, from + n - 2)
    from = from + n - 1
  end
  if m > 0 then
    above = s:sub(from, from + m - 2)
    from = from + m - 1
  end
  return writes, above, from
end

-- write makes the name keep the value that a lease with this fence writes, if it writes
-- one.
local function write(writes, first)
  if writes then
    value, value_fence, changed, news = writes, first, true, true
    keep_until(now + keep)
  end
end

-- is_above compares bytes, because < of Lua follows the locale of the server.
local function is_above(above)
  if not (above and value) then return true end
  for i = 1, math.min(#value, #above) do
    local x, y = value:byte(i), above:byte(i)
    if x ~= y then return x < y end
  end
  return #value < #above
end
