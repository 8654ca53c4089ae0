-- pass_on: grants the name to the next claim. It works on the entry, see lib/entry.

local function grant(token, weight, limit, fences, expires, delay, who, min_fence, writes)
  if weight ~= EXCLUSIVE then fences = 1 end
  local first = math.max(fence + 1, now, min_fence)
  fence = first + fences - 1
  if fence >= QUEUE_FROM then
    damaged('fences have run out, or the clock of the server is wrong')
  end
  if weight == EXCLUSIVE then
    lease = { token = token, first = first, fences = fences, since = now,
      expires = expires, delay = delay, who = who }
  else
    local rec = pack(HOLDER, first, weight, limit, now, delay) .. who
    if holders == 0 then leases_until = 0 end
    put(token, first, (writes and 'H' or 'h') .. rec, expires)
    leased(expires + delay)
    held, holders = held + weight, holders + 1
  end
  keep_until(math.max(expires + delay, now + keep, fence))
  changed, news = true, true
  write(writes, first)
  return first, fences
end

-- promote grants to the waiters, from the head on, until one does not fit.
local function promote()
  while size > holders + broken and closed <= now and not lease do
    local at = tostring(broken + holders)
    local token = call('ZRANGE', L, at, at)[1]
    local rec, expires = record(token)
    if rec:sub(1, 1) ~= 'w' then damaged('the queue is not one') end
    local fences, weight, limit, _, delay, rest = unpack(WAITER, rec, 2)
    if held + weight > limit then return end
    local writes, below, first
    writes, below, rest = wish_of(rec, rest)
    local who = rec:sub(rest)
    new_head = true
    if not value_below(below) then -- it was below when the waiter joined
      remove(token)
      signal(who, SIGNAL_RETRY, token, 0, 0)
    else
      if weight == EXCLUSIVE then remove(token) end
      first, fences = grant(token, weight, limit, fences, expires, delay, who, 0, writes)
      signal(who, SIGNAL_GRANTED, token, first, fences)
    end
  end
end
