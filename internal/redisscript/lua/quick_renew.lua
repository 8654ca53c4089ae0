-- quick_renew extends the lease of a name that nobody waits for; otherwise it answers 0, and has done nothing.
-- redis.calls: SET.
local function quick_renew(S, s, now, arg)
  if not s or #s < 70 then return 0 end
  local ttl, _, token = unpack('>ddc16', arg, 2)
  local v, f, _, _, till, expires, _, _, holder, delay = unpack('>BBdddddI4c16d', s)
  if v ~= 161 or f ~= 1 or holder ~= token or token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then return 0 end
  if not (expires > now and expires < 9007199254740992 and till < 9007199254740992) then return 0 end
  local later = now + ttl
  if expires < later then expires = later end
  if not (expires + delay <= till) then return 0 end
  -- Not KEEPTTL: somebody may have set another time on the key.
  local r = pcall('SET', S, s:sub(1, 26) .. pack('>d', expires) .. s:sub(35), 'PX', math.ceil((till - now) / 1000))
  return r.err and 0 or 1
end
