-- The lease of a name that nobody waits for. redis.calls: TIME, GET, SET.
local token, linger, keep = unpack('>c16dd', ARGV[1])
if linger == 0 and s and #s > 78 then
  local v, f, fence, closed, till, holder = unpack('>BBdddc16', s)
  if v == 161 and f == 1 and holder == token and token ~= '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then
    local first, run, since, expires = unpack('>dI4dd', s, 43)
    if expires > now and till < 9007199254740992 and first + run - 1 == fence then
      -- When memory is full this fails, and what is below gets through.
      local r = redis.pcall('SET', S, pack('>BBddd', 161, 0, fence, 0, till), 'KEEPTTL')
      if not r.err then return 1 end
    end
  end
end
