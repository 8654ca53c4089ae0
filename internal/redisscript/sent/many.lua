local pack, unpack = struct.pack, struct.unpack
local call, pcall = redis.call, redis.pcall
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local function quick_acquire(S, s, now, ttl, keep, min_fence, ends, fences, holder)
if not (now <= ends) then return -now end
local fence, kept_until = 0, 0
if s then
if #s ~= 26 then return 0 end
local v, f, closed
v, f, fence, closed, kept_until = unpack('>BBddd', s)
if v ~= 165 or f ~= 0 then return 0 end
if not (closed <= now and fence >= 0 and kept_until >= 0 and kept_until < 9007199254740992) then
return 0
end
end
local first = fence + 1
if first < now then first = now end
if first < min_fence then
if min_fence > now + 250000 then min_fence = now + 250000 end
if first < min_fence then first = min_fence end
end
fence = first + fences - 1
if fence >= 4503599627370496 then return 0 end
local r
local least = now + keep
if least < fence then least = fence end
if kept_until < least then
kept_until = math.ceil(least + keep / 8)
s = pack('>BBddddd', 165, 1, fence, 0, kept_until, now + ttl, now) .. holder
r = pcall('SET', S, s, 'PX', math.ceil((kept_until - now) / 1000))
else
s = pack('>BBddddd', 165, 1, fence, 0, kept_until, now + ttl, now) .. holder
r = pcall('SET', S, s, 'KEEPTTL')
end
return r.err and 0 or first
end
local function quick_renew(S, s, now, arg)
if not s or #s < 70 then return 0 end
local ttl, _, token = unpack('>ddc16', arg, 2)
local v, f, _, _, kept_until, expires, _, _, holder, delay = unpack('>BBdddddI4c16d', s)
if v ~= 165 or f ~= 1 or holder ~= token or token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then return 0 end
if not (expires > now and expires < 9007199254740992 and kept_until < 9007199254740992) then return 0 end
local later = now + ttl
if expires < later then expires = later end
if not (expires + delay <= kept_until) then return 0 end
s = s:sub(1, 26) .. pack('>d', expires) .. s:sub(35, -9) .. pack('>d', ttl)
local r = pcall('SET', S, s, 'PX', math.ceil((kept_until - now) / 1000))
return r.err and 0 or 1
end
local function quick_release(S, s, now, token)
if not s or #s < 70 then return 0 end
local v, f, fence, _, kept_until, expires, _, _, holder = unpack('>BBdddddI4c16', s)
if v ~= 165 or f ~= 1 or holder ~= token or token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then return 0 end
if not (expires > now and fence >= 0 and fence < 4503599627370496) then return 0 end
if not (kept_until < 9007199254740992) then return 0 end
local r = pcall('SET', S, pack('>BBddd', 165, 0, fence, 0, kept_until), 'KEEPTTL')
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
local by = ends - unpack('>I4', arg, 17)
local its = '\0\0\0\1' .. arg:sub(1, 16) .. holder
answers[i] = quick_acquire(S, s, now, ttl, keep, 0, by, 1, its)
elseif arg:byte() == 97 then
local its_ttl, its_keep, min_fence, by, fences = unpack('>ddddI4', arg, 2)
local its = arg:sub(34)
answers[i] = quick_acquire(S, s, now, its_ttl, its_keep, min_fence, by, fences, its)
elseif arg:byte() == 114 then
answers[i] = quick_renew(S, s, now, arg)
else
answers[i] = 0
end
end
answers[#KEYS + 1] = now
return answers
