-- The lease of a name that nobody waits for. redis.calls: TIME, GET, SET.
local token, ttl, keep = unpack('>c16dd', ARGV[1])
if s and #s > 78 then
  local v, f, fence, closed, till, holder = unpack('>BBdddc16', s)
  if v == 161 and f == 1 and holder == token and token ~= '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then
    local first, run, since, expires, delay = unpack('>dI4ddd', s, 43)
    if expires > now and expires < 9007199254740992 and till < 9007199254740992 and first + run - 1 == fence then
      local later = now + ttl
      if expires < later then expires = later end
      if expires + delay <= till then
        -- When memory is full this fails, and what is below gets through.
        local r = redis.pcall('SET', S, s:sub(1, 62) .. pack('>d', expires) .. s:sub(71), 'KEEPTTL')
        if not r.err then return 1 end
      end
    end
  end
end
