-- The library "struct", which Redis has and miniredis has not, as far as the scripts use it: > B I d c, and c0 to pack.
local struct = {}
do
  local byte, char, floor = string.byte, string.char, math.floor

  local function integer(n, x)
    local out = ''
    for _ = 1, n do
      out = char(x % 256) .. out
      x = floor(x / 256)
    end
    return out
  end

  local function number(s, at, n)
    local x = 0
    for i = at, at + n - 1 do x = x * 256 + byte(s, i) end
    return x
  end

  local function double(x)
    if x == 0 then return string.rep('\0', 8) end
    local sign = 0
    if x < 0 then sign, x = 2048, -x end
    local m, e = math.frexp(x)
    m = (m * 2 - 1) * 4503599627370496
    return integer(4, (sign + e + 1022) * 1048576 + floor(m / 4294967296)) .. integer(4, m % 4294967296)
  end

  local function undouble(s, at)
    local high, low = number(s, at, 4), number(s, at + 4, 4)
    local m, e, sign = (high % 1048576) * 4294967296 + low, floor(high / 1048576) % 2048, 1
    if high >= 2147483648 then sign = -1 end
    if e == 2047 then return m == 0 and sign / 0 or 0 / 0 end
    if e == 0 then return sign * math.ldexp(m, -1074) end
    return sign * math.ldexp(m + 4503599627370496, e - 1075)
  end

  local sizes = { B = 1, I = 4, d = 8, c = 1 }

  -- fields calls f with each field of a format: its letter and its size.
  local function fields(format, f)
    for letter, size in format:gmatch('(%a)(%d*)') do
      if not sizes[letter] then error('struct.lua has no ' .. letter) end
      f(letter, tonumber(size) or sizes[letter])
    end
  end

  function struct.pack(format, ...)
    local args, n, out = { ... }, 0, {}
    fields(format, function(letter, size)
      n = n + 1
      local v = args[n]
      if letter == 'd' then v = double(v) elseif letter == 'c' then v = size == 0 and v or v:sub(1, size) else v = integer(size, v) end
      out[n] = v
    end)
    return table.concat(out)
  end

  function struct.unpack(format, s, at)
    local out, n = {}, 0
    at = at or 1
    fields(format, function(letter, size)
      if at + size - 1 > #s then error('data string too short') end
      n = n + 1
      if letter == 'd' then out[n] = undouble(s, at)
      elseif letter == 'c' then out[n] = s:sub(at, at + size - 1)
      else out[n] = number(s, at, size) end
      at = at + size
    end)
    out[n + 1] = at
    return unpack(out, 1, n + 1)
  end
end
