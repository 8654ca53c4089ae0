-- The lease of a name that nobody waits for. redis.calls: TIME, GET, SET, and EXISTS to arm tracking.
local token, ttl, keep, flags = unpack('>c16ddB', ARGV[1])
local arm = flags >= 4
if s and #s > 78 then
  local v, f, fence, closed, till, holder = unpack('>BBdddc16', s)
  if v == 161 and f == 1 and holder == token and token ~= string.rep('\0', 16) then
    local first, run, since, expires, delay = unpack('>dI4ddd', s, 43)
    if expires > now and expires < 9007199254740992 and till >= expires and till < 9007199254740992 and first + run - 1 == fence then
      local later = now + ttl
      if expires < later then expires = later end
      if till < expires + delay then till = expires + delay end
      -- When memory is full this fails, and what is below gets through.
      local r = redis.pcall('SET', S,
        s:sub(1, 18) .. pack('>d', till) .. s:sub(27, 62) .. pack('>d', expires) .. s:sub(71),
        'PX', math.ceil((till - now) / 1000))
      if not r.err then
        if arm then redis.call('EXISTS', S) end
        return 1
      end
    end
  end
end
