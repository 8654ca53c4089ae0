-- people describes who holds the name, and who waits for it if asked for, for Go to show. head is when the place of the
-- first in the queue ends, if the caller knows it.
local function people(kind, position, waiters, head)
  local out = { '' }
  local n = 0
  local function holder(first, run, weight, limit, since, expires, delay, kept, who)
    n = n + 1
    out[#out + 1] = pack('>dI4I4I4dddBI4', first, run, weight, limit, since, expires, delay, kept and 1 or 0, #who) .. who
  end
  if lease then
    holder(lease.first, lease.run, ALL, ALL, lease.since, lease.expires, lease.delay, lease.token == ZERO, lease.who)
  end
  if holders > 0 then
    for _, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do
      local rec, expires = detail(id)
      local first, weight, limit, since, delay, at = unpack('>dI4I4dd', rec, 2)
      holder(first, 1, weight, limit, since, expires, delay, #id ~= 16, rec:sub(at))
    end
  end
  if size > holders + broken and (waiters or not head) then
    for i, id in ipairs(call('ZRANGE', L, broken + holders, waiters and -1 or broken + holders)) do
      if waiters then
        local rec, expires = detail(id)
        local _, weight, limit, since, _, at = unpack('>I4I4I4dd', rec, 2)
        out[#out + 1] = pack('>I4I4ddI4', weight, limit, since, expires, #rec - at + 1) .. rec:sub(at)
      else
        head = tonumber(call('ZSCORE', E, id) or 0)
      end
    end
  end
  out[1] = kind .. pack('>ddddI4I4', now, fence, closed, head or 0, position, n)
  return table.concat(out)
end
