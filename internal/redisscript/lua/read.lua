-- read: describes a name for people. It changes nothing; the reader in Go leaves out
-- expired leases and places.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV: none.
-- Answers: 'e', >dddI4: now; the last fence; closed until; how many holders follow; then
--   for each holder what lib/shown makes of it
--   >dI2: the fence of the value, and its length plus one, 0 if there is none; and the
--     value
--   for each waiter >I4I4ddI4: weight; limit; since; when its place ends; the length of
--     who it is; then who it is
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   an exclusive lease or no lease, and no claim waits: TIME GET
--   otherwise: TIME GET DETAILS; ZRANGE if it is shared; ZRANGE if a claim waits; HGET
--     and ZSCORE for each

--- @include lib/layout
--- @include lib/time
--- @include lib/name
local keep = 0 -- nothing is granted
--- @include lib/entry
--- @include lib/shown

count()
local out = { '' }
if lease then out[2] = shown() end
if holders > 0 then
  for i, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do
    out[1 + i] = shown(id)
  end
end
out[1] = 'e' .. pack('>dddI4', now, fence, closed, #out - 1)
out[#out + 1] = pack(VALUE, value_fence, value and #value + 1 or 0) .. (value or '')
if size > holders + broken then
  for _, id in ipairs(call('ZRANGE', L, broken + holders, '-1')) do
    local rec, expires = record(id)
    local _, weight, limit, since, _, at = unpack(WAITER, rec, 2)
    _, _, at = wish_of(rec, at)
    out[#out + 1] = pack('>I4I4ddI4', weight, limit, since, expires, #rec - at + 1)
      .. rec:sub(at)
  end
end
return table.concat(out)
