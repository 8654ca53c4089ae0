local pack, unpack = struct.pack, struct.unpack
local call, pcall = redis.call, redis.pcall
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local S = KEYS[1]
local s = call('GET', S)
local keep = 0
local D, L, E = KEYS[2], KEYS[3], KEYS[4]
local fence, closed, kept_until = 0, 0, 0
local details_until, held, holders, broken = 0, 0, 0, 0
local soonest = 0
local leases_until = 0
local size = 0
local lease
local value, value_fence = nil, 0
local watched, ways = 0, 0
local more = false
local changed = false
local news = false
local new_head = false
local function damaged(what) error('PAWLDAMAGED ' .. what) end
local function sane(x, below) return x >= 0 and x < below and x % 1 == 0 end
if s then
if #s < 26 then damaged('the state is too short') end
local v, f, at
v, f, fence, closed, kept_until, at = unpack('>BBddd', s)
if v ~= 165 or f > 31 then damaged('the state is of another version') end
kept_until = math.ceil(kept_until)
if not (sane(fence, 4503599627370496) and sane(closed, 9007199254740992)
and sane(kept_until, 9007199254740992)) then
damaged('a number is out of range')
end
if f >= 8 then
if #s < at + 7 then damaged('the state is too short') end
watched = unpack('>d', s, #s - 7)
if not sane(watched, 9007199254740992) then damaged('a number is out of range') end
s = s:sub(1, #s - 8)
ways, f = f - f % 8, f % 8
if watched <= now then watched, ways = 0, 0 end
end
if f >= 4 then
local n = #s - 10
if n < at - 1 then damaged('the state is too short') end
value_fence, n = unpack('>dI2', s, n + 1)
if not sane(value_fence, 4503599627370496) or #s - 10 - n < at - 1 then
damaged('the value cannot be read')
end
value = s:sub(#s - 9 - n, #s - 10)
s = s:sub(1, #s - 10 - n)
f = f - 4
end
more = f >= 2
if more then
if #s < at + 39 then damaged('the state is too short') end
details_until, held, holders, broken, soonest, leases_until, at =
unpack('>ddI4I4dd', s, at)
details_until = math.ceil(details_until)
if not (sane(details_until, 9007199254740992) and sane(held, 9007199254740992) and soonest < 9007199254740992
and sane(leases_until, 9007199254740992))
or held < holders then
damaged('a number is out of range')
end
end
if f % 2 == 1 then
if #s < at + 43 then damaged('the state is too short') end
lease = {}
lease.expires, lease.since, lease.fences, lease.token, lease.delay, at =
unpack('>ddI4c16d', s, at)
lease.who = s:sub(at)
lease.first = fence - lease.fences + 1
if lease.first < 0 or lease.fences < 1 or holders > 0 then
damaged('the holder does not fit the fence')
end
if not (sane(lease.since, 9007199254740992) and sane(lease.expires, 9007199254740992)
and sane(lease.delay, 9007199254740992)) then
damaged('a number is out of range')
end
elseif #s ~= at - 1 then
damaged('the state is too long')
end
end
local function details()
if not D then
error('TRYAGAIN the slot of the name is being moved, and it has details')
end
end
local function count()
if not more then return end
details()
size = call('ZCARD', L)
local whole = size == call('HLEN', D) and size == call('ZCARD', E)
if whole and size >= holders + broken then return end
if holders > 0 and now < leases_until then
error('PAWLMISSING details of the name are missing; it is granted again in '
.. math.ceil((leases_until - now) / 1000000) .. ' s')
end
size, held, holders, broken, changed, news = 0, 0, 0, 0, true, true
end
local function record(id)
local rec = call('HGET', D, id)
local expires = tonumber(call('ZSCORE', E, id) or nil)
if not rec or not expires then damaged('details are missing') end
if rec:sub(1, 1) == 'w' then expires = expires - 4503599627370496 end
return rec, expires
end
local function put(id, score, rec, expires)
details()
if size == 0 then
call('UNLINK', D, L, E)
details_until = 0
end
news = true
if size == 0 or expires < soonest then soonest, changed = expires, true end
call('HSET', D, id, rec)
local from = score < 0 and -4503599627370496 or score >= 4503599627370496 and 4503599627370496 or 0
call('ZADD', E, from + expires, id)
local new = call('ZADD', L, score, id)
size = size + new
return new
end
local function remove(id)
call('HDEL', D, id)
call('ZREM', L, id)
call('ZREM', E, id)
size, news = size - 1, true
if size == 0 then details_until = 0 end
end
local longer = false
local function keep_until(instant)
if instant > kept_until then
kept_until, longer, changed = math.ceil(instant + keep / 8), true, true
end
end
local function leased(instant)
if instant > leases_until then
leases_until, changed = instant + math.ceil((instant - now) / 2), true
end
end
local function signal(who, kind, token, first, fences)
local n = unpack('>I2', who)
local box = who:sub(3, 2 + n)
local m = unpack('>I2', who, 3 + n)
local shard = who:sub(5 + n, 4 + n + m)
local message = pack('>Bc16dI4', kind, token, first, fences)
if m > 0 and kind == 1 then
redis.pcall('SPUBLISH', shard, message)
elseif n > 0 then
redis.pcall('PUBLISH', box, message)
end
end
local function wish_of(s, at)
local n, m, from = unpack('>I2I2', s, at)
local writes, below
if n > 0 then
writes = s:sub(from, from + n - 2)
from = from + n - 1
end
if m > 0 then
below = s:sub(from, from + m - 2)
from = from + m - 1
end
return writes, below, from
end
local function write(writes, first)
if writes then
value, value_fence, changed, news = writes, first, true, true
keep_until(now + keep)
end
end
local function value_below(below)
if not (below and value) then return true end
for i = 1, math.min(#value, #below) do
local x, y = value:byte(i), below:byte(i)
if x ~= y then return x < y end
end
return #value < #below
end
local function grant(token, weight, limit, fences, expires, delay, who, min_fence, writes)
if weight ~= 2147483647 then fences = 1 end
local first = math.max(fence + 1, now, min_fence)
fence = first + fences - 1
if fence >= 4503599627370496 then
damaged('fences have run out, or the clock of the server is wrong')
end
if weight == 2147483647 then
lease = { token = token, first = first, fences = fences, since = now,
expires = expires, delay = delay, who = who }
else
local rec = pack('>dI4I4dd', first, weight, limit, now, delay) .. who
if holders == 0 then leases_until = 0 end
put(token, first, (writes and 'H' or 'h') .. rec, expires)
leased(expires + delay)
held, holders = held + weight, holders + 1
end
keep_until(math.max(expires + delay, now + keep, fence))
changed, news = true, true
write(writes, first)
return first, fences
end
local function promote()
while size > holders + broken and closed <= now and not lease do
local at = tostring(broken + holders)
local token = call('ZRANGE', L, at, at)[1]
local rec, expires = record(token)
if rec:sub(1, 1) ~= 'w' then damaged('the queue is not one') end
local fences, weight, limit, _, delay, rest = unpack('>I4I4I4dd', rec, 2)
if held + weight > limit then return end
local writes, below, first
writes, below, rest = wish_of(rec, rest)
local who = rec:sub(rest)
new_head = true
if not value_below(below) then
remove(token)
signal(who, 0, token, 0, 0)
else
if weight == 2147483647 then remove(token) end
first, fences = grant(token, weight, limit, fences, expires, delay, who, 0, writes)
signal(who, 1, token, first, fences)
end
end
end
local function opens()
if closed > now or lease then return closed > now or lease.token == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' end
if holders == 0 then return false end
return #call('ZRANGEBYSCORE', E, 0, 4503599627370496 - 1, 'LIMIT', 0, 1)[1] == 9
end
local function tell_head()
new_head = false
if size <= holders + broken then return end
local at = tostring(broken + holders)
local token = call('ZRANGE', L, at, at)[1]
local rec = record(token)
if rec:sub(1, 1) ~= 'w' then damaged('the queue is not one') end
local _, _, _, _, _, rest = unpack('>I4I4I4dd', rec, 2)
_, _, rest = wish_of(rec, rest)
signal(rec:sub(rest), 0, token, 0, 0)
end
local function settle()
count()
if lease and lease.expires <= now then
if lease.delay > 0 then closed = math.max(closed, lease.expires + lease.delay) end
lease, changed, news = nil, true, true
end
if size > 0 and soonest <= now then
soonest, changed = 9007199254740992 - 1, true
for from = -4503599627370496, 4503599627370496, 4503599627370496 do
local dead = call('ZRANGEBYSCORE', E, from, from + now, 'WITHSCORES')
for i = 1, #dead, 2 do
local id = dead[i]
if from < 0 then
broken = broken - 1
elseif from == 0 then
local rec = call('HGET', D, id)
if not rec then damaged('details are missing') end
local _, weight, _, _, delay = unpack('>dI4I4dd', rec, 2)
held, holders = held - weight, holders - 1
if delay > 0 then closed = math.max(closed, dead[i + 1] + delay) end
else
new_head = true
end
remove(id)
end
local next = call('ZRANGEBYSCORE', E, from, from + 4503599627370496 - 1, 'WITHSCORES',
'LIMIT', 0, 1)[2]
if next then soonest = math.min(soonest, next - from) end
end
end
if closed <= now then closed = 0 end
promote()
end
local function tell()
local channel = S:sub(1, -2) .. 'w'
if ways % 16 > 0 then redis.pcall('PUBLISH', channel, '') end
if ways >= 16 then redis.pcall('SPUBLISH', channel, '') end
end
local function save()
if value and (lease or holders > 0) then
keep_until(math.max(lease and lease.expires or 0, leases_until) + keep)
end
if new_head and size > holders + broken and opens() then tell_head() end
if news and watched > 0 then tell() end
if more ~= (size > 0) then changed = true end
if size > 0 and details_until < kept_until then
details_until, changed = kept_until + 3600000000, true
local ms = string.format('%d', math.ceil((details_until - now) / 1000))
call('PEXPIRE', D, ms)
call('PEXPIRE', L, ms)
call('PEXPIRE', E, ms)
end
if not changed then return end
local f, state = 0, ''
if size > 0 then
f, state = 2, pack('>ddI4I4dd', details_until, held, holders, broken, soonest,
leases_until)
end
if lease then
f = f + 1
state = state .. pack('>ddI4c16d', lease.expires, lease.since, lease.fences, lease.token,
lease.delay) .. lease.who
end
if value then
f, state = f + 4, state .. value .. pack('>dI2', value_fence, #value)
end
if watched > 0 then f, state = f + ways, state .. pack('>d', watched) end
state = pack('>BBddd', 165, f, fence, closed, kept_until) .. state
if longer then
call('SET', S, state, 'PX', math.ceil((kept_until - now) / 1000))
else
call('SET', S, state, 'KEEPTTL')
end
end
local long, way = unpack('>dB', ARGV[1])
local known = ways % (2 * way) >= way
if known and watched - now >= long / 2 then return 1 end
if not known then
local command = way == 16 and 'SPUBLISH' or 'PUBLISH'
local r = redis.pcall(command, S:sub(1, -2) .. 'w:', '')
if type(r) == 'table' and r.err then return 0 end
ways = ways + way
end
count()
watched, changed = math.max(watched, now + long), true
keep_until(watched)
save()
return known and 1 or 2
