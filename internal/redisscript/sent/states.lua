local t = redis.call('TIME')
local states = redis.pcall('MGET', unpack(KEYS))
if states.err then return '-' end
local out = { struct.pack('>d', t[1] * 1000000 + t[2]) }
for i = 1, #KEYS do
local s = states[i]
out[1 + i] = struct.pack('>I4', s and #s + 1 or 0) .. (s or '')
end
return table.concat(out)
