-- quick_renew extends the lease of a name if no claim waits; otherwise it answers 0, and
-- changes nothing. arg: see lib/renew_args. redis.calls: SET.
local function quick_renew(S, s, now, arg)
  if not s or #s < HEAD_AND_LEASE_SIZE then return 0 end
  local ttl, _, token = unpack('>ddc16', arg, 2)
  local v, f, _, _, kept_until, expires, _, _, holder, delay = unpack(HEAD_AND_LEASE, s)
  if v ~= VERSION or f ~= 1 or holder ~= token or token == ZERO then return 0 end
  if not (expires > now and expires < NEVER and kept_until < NEVER) then return 0 end
  local later = now + ttl
  if expires < later then expires = later end
  if not (expires + delay <= kept_until) then return 0 end
  -- Not KEEPTTL: another client may have changed the expiry of the key.
  s = s:sub(1, HEAD_SIZE) .. pack('>d', expires) .. s:sub(35, -9) .. pack('>d', ttl)
  local r = pcall('SET', S, s, 'PX', math.ceil((kept_until - now) / 1000))
  return r.err and 0 or 1
end
