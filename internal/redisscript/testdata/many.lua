local pack, unpack = struct.pack, struct.unpack
local call, pcall = redis.call, redis.pcall
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local function quick_acquire(S, s, now, ttl, keep, wish, ends, run, holder)
if not (now <= ends) then return -now end
local fence, till = 0, 0
if s then
if #s ~= 26 then return 0 end
local v, f, closed
v, f, fence, closed, till = unpack('>BBddd', s)
if v ~= 161 or f ~= 0 or not (closed <= now and fence >= 0 and till >= 0 and till < 9007199254740992) then return 0 end
end
local first = fence + 1
if first < now then first = now end
if first < wish then
if wish > now + 250000 then wish = now + 250000 end
if first < wish then first = wish end
end
fence = first + run - 1
if fence >= 4503599627370496 then return 0 end
local r
local least = now + keep
if least < fence then least = fence end
if till < least then
till = math.ceil(least + keep / 8)
local state = pack('>BBddddd', 161, 1, fence, 0, till, now + ttl, now) .. holder
r = pcall('SET', S, state, 'PX', math.ceil((till - now) / 1000))
else
r = pcall('SET', S, pack('>BBddddd', 161, 1, fence, 0, till, now + ttl, now) .. holder, 'KEEPTTL')
end
return r.err and 0 or first
end
local function quick_renew(S, s, now, arg)
if not s or #s < 70 then return 0 end
local ttl, _, token = unpack('>ddc16', arg, 2)
local v, f, _, _, till, expires, _, _, holder, delay = unpack('>BBdddddI4c16d', s)
if v ~= 161 or f ~= 1 or holder ~= token or token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then return 0 end
if not (expires > now and expires < 9007199254740992 and till < 9007199254740992) then return 0 end
local later = now + ttl
if expires < later then expires = later end
if not (expires + delay <= till) then return 0 end
local r = pcall('SET', S, s:sub(1, 26) .. pack('>d', expires) .. s:sub(35), 'PX', math.ceil((till - now) / 1000))
return r.err and 0 or 1
end
local function quick_release(S, s, now, token)
if not s or #s < 70 then return 0 end
local v, f, fence, _, till, expires, _, _, holder = unpack('>BBdddddI4c16', s)
if v ~= 161 or f ~= 1 or holder ~= token or token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then return 0 end
if not (expires > now and fence >= 0 and fence < 4503599627370496 and till < 9007199254740992) then return 0 end
local r = pcall('SET', S, pack('>BBddd', 161, 0, fence, 0, till), 'KEEPTTL')
return r.err and 0 or 1
end
local ttl, keep, ends, at, holder
if ARGV[1] ~= '' then
ttl, keep, ends, at = unpack('>ddd', ARGV[1])
holder = ARGV[1]:sub(at)
end
local answers = {}
for i = 1, #KEYS do
local S, arg = KEYS[i], ARGV[1 + i]
local s, n = pcall('GET', S), #arg
if type(s) == 'table' then
answers[i] = 0
elseif n == 16 then
answers[i] = quick_release(S, s, now, arg)
elseif n == 20 then
answers[i] = quick_acquire(S, s, now, ttl, keep, 0, ends - unpack('>I4', arg, 17), 1, '\0\0\0\1' .. arg:sub(1, 16) .. holder)
elseif arg:byte() == 97 then
local its, kept, wish, by, run = unpack('>ddddI4', arg, 2)
answers[i] = quick_acquire(S, s, now, its, kept, wish, by, run, arg:sub(34))
elseif arg:byte() == 114 then
answers[i] = quick_renew(S, s, now, arg)
else
answers[i] = 0
end
end
answers[#KEYS + 1] = now
return answers
