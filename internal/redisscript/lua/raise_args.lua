local token, wanted, keep = unpack('>c16dd', ARGV[1])
