if quick_renew(S, s, now, ARGV[1]) > 0 then return 1 end
local ttl, keep, token = unpack('>ddc16', ARGV[1], 2)
