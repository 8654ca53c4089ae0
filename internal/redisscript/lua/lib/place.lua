-- place_of returns 'lease' for the exclusive holder, 'h' for a shared holder, 'w' for a
-- waiter, or nil; and the score in L for 'h' and 'w'.
local function place_of(token)
  if token == ZERO then return end -- the token of leases that are kept for a minimum hold
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
