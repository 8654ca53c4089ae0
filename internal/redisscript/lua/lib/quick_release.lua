-- quick_release ends the lease of a name if no claim waits; otherwise it answers 0, and
-- changes nothing. redis.calls: SET.
local function quick_release(S, s, now, token)
  if not s or #s < HEAD_AND_LEASE_SIZE then return 0 end
  local v, f, fence, _, kept_until, expires, _, _, holder = unpack(HEAD_TO_TOKEN, s)
  if v ~= VERSION or f ~= 1 or holder ~= token or token == ZERO then return 0 end
  if not (expires > now and fence >= 0 and fence < QUEUE_FROM) then return 0 end
  if not (kept_until < NEVER) then return 0 end
  local r = pcall('SET', S, pack(HEAD, VERSION, 0, fence, 0, kept_until), 'KEEPTTL')
  return r.err and 0 or 1
end
