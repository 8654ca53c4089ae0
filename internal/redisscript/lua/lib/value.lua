-- The value that a name keeps in S: `value`, or nil, and value_fence, the fence under
-- which it was written.
--
-- A wish has two values: the one that a claim writes, and 'below': the name's value must
-- be less than that. A claim sends it, and a waiter's record has it, as >I2I2: the length
-- of each plus one, or 0 if it is missing; then both values.
local function wish_of(s, at)
  local n, m, from = unpack('>I2I2', s, at)
  local writes, below
  if n > 0 then
    writes = s:sub(from, from + n - 2)
    from = from + n - 1
  end
  if m > 0 then
    below = s:sub(from, from + m - 2)
    from = from + m - 1
  end
  return writes, below, from
end

-- write makes the name keep the value 'writes', if there is one, under the fence 'first'.
local function write(writes, first)
  if writes then
    value, value_fence, changed, news = writes, first, true, true
    keep_until(now + keep)
  end
end

-- value_below compares bytes, because < of Lua follows the locale of the server.
local function value_below(below)
  if not (below and value) then return true end
  for i = 1, math.min(#value, #below) do
    local x, y = value:byte(i), below:byte(i)
    if x ~= y then return x < y end
  end
  return #value < #below
end
