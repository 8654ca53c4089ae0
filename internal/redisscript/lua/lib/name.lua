-- Every script of one name begins with these lines: S is its state, see lib/layout.
local S = KEYS[1]
local s = call('GET', S)
