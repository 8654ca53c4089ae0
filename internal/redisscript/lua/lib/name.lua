-- Every script of one name goes on here: S is its state, see lib/layout.
local S = KEYS[1]
local s = call('GET', S)
