-- stands says where a token stands: 'lease', 'h' for a shared holder, 'w' for a waiter, or nil.
local function stands(token)
  if token == ZERO then return end -- those that are kept have it
  if lease and lease.token == token then return 'lease' end
  if size == 0 then return end
  local score = tonumber(call('ZSCORE', L, token) or nil)
  if score then return score < WAITS and 'h' or 'w', score end
end
