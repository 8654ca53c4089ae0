-- snapshot describes a name for Go: who holds it, and who waits for it if asked for. head
-- is when the place of the first in the queue ends, if the caller knows it. The answer is
--
--   kind: 'h', a claim is refused or queued; 'e', the entry is read
--   >ddddI4I4: now; the last fence; closed until; when the place of the first in the
--     queue ends, 0 if nobody waits; the position of the claim; how many holders follow
--   for each holder >dI4I4I4dddBI4: fence; how many; weight; limit; since; expires;
--     lock-delay; 1 if it was released, and is kept for its minimum hold; the length of
--     who it is; and that
--   for 'e' >dI2: the fence of the value, and its length plus one, 0 if there is none;
--     and the value
--   for each waiter >I4I4ddI4: weight; limit; since; when its place ends; the length of
--     who it is; and that
local function snapshot(kind, position, waiters, head)
  local out = { '' }
  local n = 0
  local function add(first, fences, weight, limit, since, expires, delay, released, who)
    n = n + 1
    local kept = released and 1 or 0
    out[#out + 1] = pack('>dI4I4I4dddBI4', first, fences, weight, limit, since, expires,
      delay, kept, #who) .. who
  end
  if lease then
    add(lease.first, lease.fences, EXCLUSIVE, EXCLUSIVE, lease.since, lease.expires,
      lease.delay, lease.token == ZERO, lease.who)
  end
  if holders > 0 then
    for _, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do
      local rec, expires = record(id)
      local first, weight, limit, since, delay, at = unpack(HOLDER, rec, 2)
      add(first, 1, weight, limit, since, expires, delay, #id ~= 16, rec:sub(at))
    end
  end
  if kind == 'e' then
    local v = value or ''
    out[#out + 1] = pack(VALUE, value_fence, value and #v + 1 or 0) .. v
  end
  if size > holders + broken and (waiters or not head) then
    local from = broken + holders
    for _, id in ipairs(call('ZRANGE', L, from, waiters and -1 or from)) do
      if waiters then
        local rec, expires = record(id)
        local _, weight, limit, since, _, at = unpack(WAITER, rec, 2)
        _, _, at = wish_of(rec, at)
        out[#out + 1] = pack('>I4I4ddI4', weight, limit, since, expires, #rec - at + 1)
          .. rec:sub(at)
      else
        head = tonumber(call('ZSCORE', E, id) or 0)
      end
    end
  end
  out[1] = kind .. pack('>ddddI4I4', now, fence, closed, head or 0, position, n)
  return table.concat(out)
end
