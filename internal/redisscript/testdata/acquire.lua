local pack, unpack = struct.pack, struct.unpack
local call, pcall = redis.call, redis.pcall
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local S = KEYS[1]
local s = call('GET', S)
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
local ttl, keep, wish, ends, run, token, delay, at = unpack('>ddddI4c16d', ARGV[1], 2)
if ARGV[1]:byte() == 97 then
local first = quick_acquire(S, s, now, ttl, keep, wish, ends, run, ARGV[1]:sub(34))
if first ~= 0 then return first end
end
if not (now <= ends) then return -now end
local who = ARGV[1]:sub(at)
local queueing, wait, weight, limit, ticket = unpack('>BdI4I4d', ARGV[2])
if wish > now + 250000 then wish = now + 250000 end
local D, L, E = KEYS[2], KEYS[3], KEYS[4]
local ALL, WAITS, NEVER = 2147483647, 4503599627370496, 9007199254740992
local ZERO = string.rep('\0', 16)
local GRANTED, LOST = 1, 2
local fence, closed, till = 0, 0, 0
local kept, held, holders, broken = 0, 0, 0, 0
local soonest = 0
local size = 0
local lease
local more = false
local changed = false
local function damaged(what) error('PAWLDAMAGED ' .. what) end
local function sane(x, below) return x >= 0 and x < below and x % 1 == 0 end
if s then
if #s < 26 then damaged('the state is too short') end
local v, f, at
v, f, fence, closed, till, at = unpack('>BBddd', s)
if v ~= 161 or f > 3 then damaged('the state is of another version') end
till = math.ceil(till)
if not (sane(fence, WAITS) and sane(closed, NEVER) and sane(till, NEVER)) then damaged('a number is out of range') end
more = f >= 2
if more then
if #s < at + 31 then damaged('the state is too short') end
kept, held, holders, broken, soonest, at = unpack('>ddI4I4d', s, at)
kept = math.ceil(kept)
if not (sane(kept, NEVER) and sane(held, NEVER) and soonest < NEVER) or held < holders then damaged('a number is out of range') end
end
if f % 2 == 1 then
if #s < at + 43 then damaged('the state is too short') end
lease = {}
lease.expires, lease.since, lease.run, lease.token, lease.delay, at = unpack('>ddI4c16d', s, at)
lease.who = s:sub(at)
lease.first = fence - lease.run + 1
if lease.first < 0 or lease.run < 1 or holders > 0 then damaged('the holder does not fit the fence') end
if not (sane(lease.since, NEVER) and sane(lease.expires, NEVER) and sane(lease.delay, NEVER)) then
damaged('a number is out of range')
end
elseif #s ~= at - 1 then
damaged('the state is too long')
end
end
local function details()
if not D then error('TRYAGAIN the slot of the name is being moved, and it has details') end
end
local function count()
if not more then return end
details()
size = call('ZCARD', L)
if size < holders + broken then damaged('holders are missing') end
end
local function detail(id)
local rec = call('HGET', D, id)
local expires = tonumber(call('ZSCORE', E, id) or nil)
if not rec or not expires then damaged('details are missing') end
return rec, expires
end
local joined = false
local function put(id, score, rec, expires)
details()
if size == 0 then
call('UNLINK', D, L, E)
kept = 0
end
joined = true
if size == 0 or expires < soonest then soonest, changed = expires, true end
call('HSET', D, id, rec)
call('ZADD', E, expires, id)
local new = call('ZADD', L, score, id)
size = size + new
return new
end
local function forget(id)
call('HDEL', D, id)
call('ZREM', L, id)
call('ZREM', E, id)
size = size - 1
if size == 0 then kept = 0 end
end
local raised = false
local function raise(instant)
if instant > till then till, raised, changed = math.ceil(instant + keep / 8), true, true end
end
local function signal(who, kind, token, first, run)
local n = unpack('>I2', who)
local box = who:sub(3, 2 + n)
local m = unpack('>I2', who, 3 + n)
local shard = who:sub(5 + n, 4 + n + m)
local said = pack('>Bc16dI4', kind, token, first, run)
if m > 0 and kind == GRANTED then
redis.pcall('SPUBLISH', shard, said)
elseif n > 0 then
redis.pcall('PUBLISH', box, said)
end
end
local function grant(token, weight, limit, run, expires, delay, who, wish)
if weight ~= ALL then run = 1 end
local first = math.max(fence + 1, now, wish)
fence = first + run - 1
if fence >= WAITS then damaged('fences have run out, or the clock of the server is wrong') end
if weight == ALL then
lease = { token = token, first = first, run = run, since = now, expires = expires, delay = delay, who = who }
else
put(token, first, 'h' .. pack('>dI4I4dd', first, weight, limit, now, delay) .. who, expires)
held, holders = held + weight, holders + 1
end
raise(math.max(expires + delay, now + keep, fence))
changed = true
return first, run
end
local function promote()
while size > holders + broken and closed <= now and not lease do
local at = tostring(broken + holders)
local token = call('ZRANGE', L, at, at)[1]
local rec, expires = detail(token)
if rec:sub(1, 1) ~= 'w' then damaged('the queue is not one') end
local run, weight, limit, _, delay, rest = unpack('>I4I4I4dd', rec, 2)
if held + weight > limit then return end
local who = rec:sub(rest)
if weight == ALL then forget(token) end
local first
first, run = grant(token, weight, limit, run, expires, delay, who, 0)
signal(who, GRANTED, token, first, run)
end
end
local function settle()
count()
if lease and lease.expires <= now then
if lease.delay > 0 then closed = math.max(closed, lease.expires + lease.delay) end
lease, changed = nil, true
end
if size > 0 and soonest <= now then
local dead = call('ZRANGEBYSCORE', E, '-inf', now, 'WITHSCORES')
for i = 1, #dead, 2 do
local id = dead[i]
if #id == 17 then
broken = broken - 1
else
local rec = call('HGET', D, id)
if not rec then damaged('details are missing') end
if rec:sub(1, 1) == 'h' then
local _, weight, _, _, delay = unpack('>dI4I4dd', rec, 2)
held, holders = held - weight, holders - 1
if delay > 0 then closed = math.max(closed, dead[i + 1] + delay) end
end
end
forget(id)
end
changed = true
if size > 0 then soonest = tonumber(call('ZRANGE', E, '0', '0', 'WITHSCORES')[2] or 0) end
end
if closed <= now then closed = 0 end
promote()
end
local function save()
if more ~= (size > 0) then changed = true end
if joined and size > 0 and not (kept >= till and call('HLEN', D) == size and call('ZCARD', E) == size) then
kept = 0
end
if size > 0 and kept < till then
kept, changed = till + 3600000000, true
local ms = string.format('%d', math.ceil((kept - now) / 1000))
call('PEXPIRE', D, ms)
call('PEXPIRE', L, ms)
call('PEXPIRE', E, ms)
end
if not changed then return end
local f, state = 0, ''
if size > 0 then f, state = 2, pack('>ddI4I4d', kept, held, holders, broken, soonest) end
if lease then
f = f + 1
state = state .. pack('>ddI4c16d', lease.expires, lease.since, lease.run, lease.token, lease.delay) .. lease.who
end
state = pack('>BBddd', 161, f, fence, closed, till) .. state
if raised then
call('SET', S, state, 'PX', math.ceil((till - now) / 1000))
else
call('SET', S, state, 'KEEPTTL')
end
end
local function stands(token)
if token == ZERO then return end
if lease and lease.token == token then return 'lease' end
if size == 0 then return end
local score = tonumber(call('ZSCORE', L, token) or nil)
if score then return score < WAITS and 'h' or 'w', score end
end
local function extend(place, token, later)
if place == 'lease' then
if later > lease.expires then lease.expires, changed = later, true end
raise(lease.expires + lease.delay)
else
local rec, expires = detail(token)
local _, _, _, _, delay = unpack('>dI4I4dd', rec, 2)
if later > expires then
call('ZADD', E, later, token)
raise(later + delay)
end
end
end
local function answer(first, given)
if given == run then return first end
return 'g' .. pack('>dI4', first, given)
end
settle()
local place, score = stands(token)
if place == 'lease' or place == 'h' then
extend(place, token, now + ttl)
save()
if place == 'h' then return score end
return answer(lease.first, lease.run)
end
local function people(kind, position, waiters, head)
local out = { '' }
local n = 0
local function holder(first, run, weight, limit, since, expires, delay, kept, who)
n = n + 1
out[#out + 1] = pack('>dI4I4I4dddBI4', first, run, weight, limit, since, expires, delay, kept and 1 or 0, #who) .. who
end
if lease then
holder(lease.first, lease.run, ALL, ALL, lease.since, lease.expires, lease.delay, lease.token == ZERO, lease.who)
end
if holders > 0 then
for _, id in ipairs(call('ZRANGE', L, broken, broken + holders - 1)) do
local rec, expires = detail(id)
local first, weight, limit, since, delay, at = unpack('>dI4I4dd', rec, 2)
holder(first, 1, weight, limit, since, expires, delay, #id ~= 16, rec:sub(at))
end
end
if size > holders + broken and (waiters or not head) then
for i, id in ipairs(call('ZRANGE', L, broken + holders, waiters and -1 or broken + holders)) do
if waiters then
local rec, expires = detail(id)
local _, weight, limit, since, _, at = unpack('>I4I4I4dd', rec, 2)
out[#out + 1] = pack('>I4I4ddI4', weight, limit, since, expires, #rec - at + 1) .. rec:sub(at)
else
head = tonumber(call('ZSCORE', E, id) or 0)
end
end
end
out[1] = kind .. pack('>ddddI4I4', now, fence, closed, head or 0, position, n)
return table.concat(out)
end
local score, last, ahead = WAITS + now, nil, size > holders + broken
if queueing == 1 and not place then
if ahead then last = tonumber(call('ZRANGE', L, '-1', '-1', 'WITHSCORES')[2]) end
if last and last > score then score = last end
if ticket > 0 and WAITS + ticket < score then
score = math.max(WAITS + ticket, score - 250000)
if last then
local at = tostring(broken + holders)
ahead = tonumber(call('ZRANGE', L, at, at, 'WITHSCORES')[2]) <= score
while call('ZRANGEBYSCORE', L, score, score)[1] do score = score + 1 end
end
elseif score == last then
score = last + 1
end
end
if not ahead and closed <= now and not lease and held + weight <= limit then
local first, given = grant(token, weight, limit, run, now + ttl, delay, who, wish)
save()
return answer(first, given)
end
local position, head = 0, nil
if queueing == 1 then
if place then
local rec = detail(token)
if unpack('>I4', rec, 2) ~= run then call('HSET', D, token, 'w' .. pack('>I4', run) .. rec:sub(6)) end
call('ZADD', E, 'GT', now + wait, token)
else
local since = ticket > 0 and score - WAITS or now
put(token, score, 'w' .. pack('>I4I4I4dd', run, weight, limit, since, delay) .. who, now + wait)
position = size - broken - holders
if last and last > score then position = call('ZRANK', L, token) - broken - holders + 1 end
if position == 1 then head = now + wait end
end
raise(now + wait)
end
if place then position = call('ZRANK', L, token) - broken - holders + 1 end
save()
return people('h', position, false, head)
