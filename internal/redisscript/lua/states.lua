-- states: returns the stored states of many names. It changes nothing. For names that
-- have details, or are damaged, the reader in Go then runs the script read.
--
-- KEYS[i]: S of a name.
-- ARGV: none.
-- Answers: >d, the server's time in microseconds; then for each key >I4, the length of
--   its state plus one, or 0 if it has no state, or another type; then the state.
--   '-' if the user may not run MGET.
--
-- redis.calls: TIME MGET

local t = redis.call('TIME')
local states = redis.pcall('MGET', unpack(KEYS))
if states.err then return '-' end
local out = { struct.pack('>d', t[1] * 1000000 + t[2]) }
for i = 1, #KEYS do
  local s = states[i]
  out[1 + i] = struct.pack('>I4', s and #s + 1 or 0) .. (s or '')
end
return table.concat(out)
