-- Every script except states and rights begins here, with the commands that it calls, and
-- the time of the server in microseconds.
local pack, unpack = struct.pack, struct.unpack
local call, pcall = redis.call, redis.pcall
local t = call('TIME')
local now = t[1] * 1000000 + t[2] -- exact in a double until the year 2255
