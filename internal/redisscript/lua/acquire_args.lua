local ttl, keep, wish, ends, run, token, delay, at = unpack('>ddddI4c16d', ARGV[1], 2)
if ARGV[1]:byte() == 97 then -- 'a'
  local first = quick_acquire(S, s, now, ttl, keep, wish, ends, run, ARGV[1]:sub(34))
  if first ~= 0 then return first end
end
if not (now <= ends) then return -now end
local who = ARGV[1]:sub(at)
local queueing, wait, weight, limit, ticket = unpack('>BdI4I4d', ARGV[2])
if wish > now + 250000 then wish = now + 250000 end -- driver.MaxLead
