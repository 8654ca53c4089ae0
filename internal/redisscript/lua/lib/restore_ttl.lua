-- restore_ttl restores the expiry of a key, if another client has changed it. It reads
-- the expiry first, because the server reports each write to clients that watch the key.
local function restore_ttl(key, instant)
  local ms, is = math.ceil((instant - now) / 1000), call('PTTL', key)
  if is ~= -2 and ms > 0 and (is < ms - 10 or is > ms + 1000) then
    call('PEXPIRE', key, string.format('%d', ms))
  end
end
