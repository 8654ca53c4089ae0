-- quick_release ends the lease of a name that nobody waits for; otherwise it answers 0, and has done nothing.
-- redis.calls: SET.
local function quick_release(S, s, now, token)
  if not s or #s < 70 then return 0 end
  local v, f, fence, _, till, expires, _, _, holder = unpack('>BBdddddI4c16', s)
  if v ~= 161 or f ~= 1 or holder ~= token or token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then return 0 end
  if not (expires > now and fence >= 0 and fence < 4503599627370496 and till < 9007199254740992) then return 0 end
  local r = pcall('SET', S, pack('>BBddd', 161, 0, fence, 0, till), 'KEEPTTL')
  return r.err and 0 or 1
end
