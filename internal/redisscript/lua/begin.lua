-- Every script of one name goes on here. What is stored of a name is described in state.lua.
local S = KEYS[1]
local s = call('GET', S)
