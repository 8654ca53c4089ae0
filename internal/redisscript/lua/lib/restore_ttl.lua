-- restore_ttl restores the expiry of a key, if another client has changed it. It reads
-- that first, because the server reports a key that is written to all who watch it.
local function restore_ttl(key, instant)
  local ms, is = math.ceil((instant - now) / 1000), call('PTTL', key)
  if is ~= -2 and ms > 0 and (is < ms - 10 or is > ms + 1000) then
    call('PEXPIRE', key, string.format('%d', ms))
  end
end
