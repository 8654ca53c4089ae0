if ARGV[1]:byte() == 97 then -- 'a'
  local first = quick_acquire(S, s, now, ARGV[1])
  if first > 0 then return first end
end
local ttl, keep, wish, run, token, delay, at = unpack('>dddI4c16d', ARGV[1], 2)
local who = ARGV[1]:sub(at)
local flags, wait, weight, limit = unpack('>BdI4I4', ARGV[2])
local queueing, force = flags % 2 == 1, flags >= 2
if wish > now + 250000 then wish = now + 250000 end -- driver.MaxLead
