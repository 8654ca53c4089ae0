local wanted, delay, keep = unpack('>ddd', ARGV[1])
