-- The whole lock algorithm, as in locktable.Entry, on the stored state of one name: see
-- lib/layout. It needs the lines of lib/time and lib/name, and the local keep.
local D, L, E = KEYS[2], KEYS[3], KEYS[4] -- nil while a slot is moved, see details()

local fence, closed, kept_until = 0, 0, 0
local details_until, held, holders, broken = 0, 0, 0, 0
local soonest = 0 -- no member of E expires before that
local leases_until = 0 -- no shared holder has a lease, or a lock-delay, after that
local size = 0    -- how many members D, L and E have, each
local lease       -- the exclusive holder
local value, value_fence = nil, 0
local watched, ways = 0, 0 -- until when the name is watched, and on which channels
local more = false         -- S says that there are details
local changed = false      -- S has to be written again
local news = false         -- for watchers: all changes except renewals
local new_head = false     -- the queue may have another head

-- Damaged data is an error, and never counts as a free name.
local function damaged(what) error('PAWLDAMAGED ' .. what) end

local function sane(x, below) return x >= 0 and x < below and x % 1 == 0 end

if s then
  if #s < HEAD_SIZE then damaged('the state is too short') end
  local v, f, at
  v, f, fence, closed, kept_until, at = unpack(HEAD, s)
  if v ~= VERSION or f > 31 then damaged('the state is of another version') end
  kept_until = math.ceil(kept_until) -- earlier versions stored fractions
  if not (sane(fence, QUEUE_FROM) and sane(closed, NEVER)
    and sane(kept_until, NEVER)) then
    damaged('a number is out of range')
  end
  if f >= WAY_PLAIN then
    if #s < at + 7 then damaged('the state is too short') end
    watched = unpack(WATCHED, s, #s - 7)
    if not sane(watched, NEVER) then damaged('a number is out of range') end
    s = s:sub(1, #s - 8)
    ways, f = f - f % WAY_PLAIN, f % WAY_PLAIN
    if watched <= now then watched, ways = 0, 0 end
  end
  if f >= 4 then
    local n = #s - 10
    if n < at - 1 then damaged('the state is too short') end
    value_fence, n = unpack(VALUE, s, n + 1)
    if not sane(value_fence, QUEUE_FROM) or #s - 10 - n < at - 1 then
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
      unpack(DETAILS, s, at)
    details_until = math.ceil(details_until)
    if not (sane(details_until, NEVER) and sane(held, NEVER) and soonest < NEVER
      and sane(leases_until, NEVER))
      or held < holders then
      damaged('a number is out of range')
    end
  end
  if f % 2 == 1 then
    if #s < at + 43 then damaged('the state is too short') end
    lease = {}
    lease.expires, lease.since, lease.fences, lease.token, lease.delay, at =
      unpack(LEASE, s, at)
    lease.who = s:sub(at)
    lease.first = fence - lease.fences + 1 -- nothing else was granted since
    if lease.first < 0 or lease.fences < 1 or holders > 0 then
      damaged('the holder does not fit the fence')
    end
    if not (sane(lease.since, NEVER) and sane(lease.expires, NEVER)
      and sane(lease.delay, NEVER)) then
      damaged('a number is out of range')
    end
  elseif #s ~= at - 1 then
    damaged('the state is too long')
  end
end

-- A cluster that is moving a slot refuses a script with several keys if some of them are
-- missing, and most names have only S. Then the driver gives S alone, which is enough as
-- long as there are no details.
local function details()
  if not D then
    error('TRYAGAIN the slot of the name is being moved, and it has details')
  end
end

-- count counts the details. Another client, or a server that needs memory, may have
-- deleted some of D, L and E. Then the holders are unknown until the last lease among
-- them must have ended. After that, or at once without shared holders, count drops the
-- rest, and waiters retry.
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
  if rec:sub(1, 1) == 'w' then expires = expires - QUEUE_FROM end
  return rec, expires
end

local function put(id, score, rec, expires)
  details()
  if size == 0 then
    -- These keys exist if a client deleted S alone, or after count found some missing.
    call('UNLINK', D, L, E)
    details_until = 0
  end
  news = true
  if size == 0 or expires < soonest then soonest, changed = expires, true end
  call('HSET', D, id, rec)
  local from = score < 0 and -QUEUE_FROM or score >= QUEUE_FROM and QUEUE_FROM or 0
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
  if size == 0 then details_until = 0 end -- the keys are gone, and their expiry, too
end

-- keep_until makes all keys last until an instant, and somewhat longer, so that few steps
-- have to do so. It never shortens their time.
local longer = false
local function keep_until(instant)
  if instant > kept_until then
    kept_until, longer, changed = math.ceil(instant + keep / 8), true, true
  end
end

-- leased records the end of a shared lease. It adds half of the time that is left, so
-- that few leases make a step write S.
local function leased(instant)
  if instant > leases_until then
    leases_until, changed = instant + math.ceil((instant - now) / 2), true
  end
end

-- signal notifies a claimant, on the channels with which 'who' begins. Nothing depends on
-- the arrival of the message, so a user without the right to publish may still lock.
local function signal(who, kind, token, first, fences)
  local n = unpack('>I2', who)
  local box = who:sub(3, 2 + n)
  local m = unpack('>I2', who, 3 + n)
  local shard = who:sub(5 + n, 4 + n + m)
  local message = pack('>Bc16dI4', kind, token, first, fences)
  if m > 0 and kind == SIGNAL_GRANTED then
    redis.pcall('SPUBLISH', shard, message)
  elseif n > 0 then
    redis.pcall('PUBLISH', box, message)
  end
end

--- @include lib/value

--- @include lib/pass_on

-- opens reports whether the name will open without a step of a client: at the end of a
-- lock-delay, or of a minimum hold. Of several shared holders it looks only at the first
-- to end, because the head then retries, and learns of the next.
local function opens()
  if closed > now or lease then return closed > now or lease.token == ZERO end
  if holders == 0 then return false end
  return #call('ZRANGEBYSCORE', E, 0, QUEUE_FROM - 1, 'LIMIT', 0, 1)[1] == 9 -- no token
end

-- tell_head makes the head of the queue send its claim again. The answer says when the
-- name will open without a step of a client.
local function tell_head()
  new_head = false
  if size <= holders + broken then return end
  local at = tostring(broken + holders)
  local token = call('ZRANGE', L, at, at)[1]
  local rec = record(token)
  if rec:sub(1, 1) ~= 'w' then damaged('the queue is not one') end
  local _, _, _, _, _, rest = unpack(WAITER, rec, 2)
  _, _, rest = wish_of(rec, rest)
  signal(rec:sub(rest), SIGNAL_RETRY, token, 0, 0)
end

-- settle removes expired members, then grants to the head of the queue while it fits.
local function settle()
  count()
  if lease and lease.expires <= now then
    if lease.delay > 0 then closed = math.max(closed, lease.expires + lease.delay) end
    lease, changed, news = nil, true, true
  end
  if size > 0 and soonest <= now then
    soonest, changed = NEVER - 1, true
    for from = -QUEUE_FROM, QUEUE_FROM, QUEUE_FROM do -- the broken, holders, waiters
      local dead = call('ZRANGEBYSCORE', E, from, from + now, 'WITHSCORES')
      for i = 1, #dead, 2 do
        local id = dead[i]
        if from < 0 then
          broken = broken - 1
        elseif from == 0 then
          local rec = call('HGET', D, id)
          if not rec then damaged('details are missing') end
          local _, weight, _, _, delay = unpack(HOLDER, rec, 2)
          held, holders = held - weight, holders - 1
          if delay > 0 then closed = math.max(closed, dead[i + 1] + delay) end
        else
          new_head = true
        end
        remove(id)
      end
      local next = call('ZRANGEBYSCORE', E, from, from + QUEUE_FROM - 1, 'WITHSCORES',
        'LIMIT', 0, 1)[2]
      if next then soonest = math.min(soonest, next - from) end
    end
  end
  if closed <= now then closed = 0 end
  promote()
end

-- tell publishes to the watchers that something has changed.
local function tell()
  local channel = S:sub(1, -2) .. 'w'
  if ways % WAY_SLOT > 0 then redis.pcall('PUBLISH', channel, '') end
  if ways >= WAY_SLOT then redis.pcall('SPUBLISH', channel, '') end
end

local function save()
  if value and (lease or holders > 0) then -- the value outlasts the last lease
    keep_until(math.max(lease and lease.expires or 0, leases_until) + keep)
  end
  if new_head and size > holders + broken and opens() then tell_head() end
  if news and watched > 0 then tell() end
  if more ~= (size > 0) then changed = true end
  if size > 0 and details_until < kept_until then
    -- An hour more, so that this is done about once an hour.
    details_until, changed = kept_until + 3600000000, true
    local ms = string.format('%d', math.ceil((details_until - now) / 1000))
    call('PEXPIRE', D, ms)
    call('PEXPIRE', L, ms)
    call('PEXPIRE', E, ms)
  end
  if not changed then return end
  local f, state = 0, ''
  if size > 0 then
    f, state = 2, pack(DETAILS, details_until, held, holders, broken, soonest,
      leases_until)
  end
  if lease then
    f = f + 1
    state = state .. pack(LEASE, lease.expires, lease.since, lease.fences, lease.token,
      lease.delay) .. lease.who
  end
  if value then
    f, state = f + 4, state .. value .. pack(VALUE, value_fence, #value)
  end
  if watched > 0 then f, state = f + ways, state .. pack(WATCHED, watched) end
  state = pack(HEAD, VERSION, f, fence, closed, kept_until) .. state
  if longer then
    call('SET', S, state, 'PX', math.ceil((kept_until - now) / 1000))
  else
    call('SET', S, state, 'KEEPTTL')
  end
end
