--- @include lib/shown

-- refusal answers a claim that is refused or queued. Its cost does not grow with the
-- number of holders. 'head' is the end of the first waiter's place, if the caller knows
-- it. 'own' is the claim's own token, if its lease has to be left out. The answer is
--
--   'h', >ddddI4I4: now; the last fence; closed until; when this may change by itself;
--     the position of the claim; how many holders there are
--   if there are any, the holder that expires first, see lib/shown; of several that
--     expire at the same time, one with the longest lock-delay
local function refusal(position, weight, limit, head, own)
  local n, first, over = holders, '', 0
  if lease then
    n, first, over = 1, shown()
  elseif n > 0 then
    local two = call('ZRANGEBYSCORE', E, 0, QUEUE_FROM - 1, 'WITHSCORES', 'LIMIT', 0, 2)
    local at = two[two[1] == own and 4 or 2]
    for _, id in ipairs(at and call('ZRANGEBYSCORE', E, at, at) or {}) do
      local text, its = shown(id)
      if id ~= own and its > over then first, over = text, its end
    end
    if own then n = n - 1 end
  end
  if closed > now then
    over = closed
  elseif not lease and size > holders + broken and held + weight <= limit then
    if not head then
      local at = tostring(broken + holders)
      head = call('ZSCORE', E, call('ZRANGE', L, at, at)[1]) - QUEUE_FROM
    end
    if over == 0 or head < over then over = head end
  end
  return 'h' .. pack('>ddddI4I4', now, fence, closed, over, position, n) .. first
end
