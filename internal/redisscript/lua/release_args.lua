local minHold, keep, token, at = unpack('>ddc16', ARGV[1], 2)
if ARGV[1]:byte() == 101 and quick_release(S, s, now, token) > 0 then return 1 end -- 'e'
if ARGV[1]:byte() == 79 and not (now <= unpack('>d', ARGV[1], at)) then return -now end -- 'O'
