-- The value that a name keeps: `value`, or nil, and the fence under which it was written.
-- It stands in S.
--
-- A wish is what a claim has to do with it, as it is sent and as it is stored of a
-- waiter: >I2I2, the length of what it writes and of what it wants to be above, each plus
-- one, 0 for none; then the two.
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

-- write makes the name keep what is written under a lease with this fence, if anything.
local function write(writes, first)
  if writes then
    value, value_fence, changed, news = writes, first, true, true
    keep_until(now + keep)
  end
end

-- is_above compares bytes, for the < of Lua goes by the locale of the server.
local function is_above(above)
  if not (above and value) then return true end
  for i = 1, math.min(#value, #above) do
    local x, y = value:byte(i), above:byte(i)
    if x ~= y then return x < y end
  end
  return #value < #above
end
