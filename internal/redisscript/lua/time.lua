-- Every script begins here.
local pack, unpack = struct.pack, struct.unpack
local call, pcall = redis.call, redis.pcall
local t = call('TIME')
local now = t[1] * 1000000 + t[2] -- microseconds: below 2^53 until the year 2255, so a double keeps them exact
