-- restore_ttl gives a key its own time back, if somebody else has set it. It looks first,
-- for a key that is written is told to all who watch it.
local function restore_ttl(key, instant)
  local ms, is = math.ceil((instant - now) / 1000), call('PTTL', key)
  if is ~= -2 and ms > 0 and (is < ms - 10 or is > ms + 1000) then
    call('PEXPIRE', key, string.format('%d', ms))
  end
end
