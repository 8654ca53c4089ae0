-- place_of says what a token has, and its score in the line: 'lease', 'h' as a shared
-- holder, 'w' as a waiter, or nil.
local function place_of(token)
  if token == ZERO then return end -- leases that are kept for a minimum hold have it
  if lease and lease.token == token then return 'lease' end
  if size == 0 then return end
  local score = tonumber(call('ZSCORE', L, token) or nil)
  if score then return score < QUEUE_FROM and 'h' or 'w', score end
end

-- leave takes a waiter out of the queue.
local function leave(token)
  new_head = new_head or call('ZRANK', L, token) == holders + broken
  remove(token)
end
