-- release: gives up a lease or a place in the queue, and passes the name on.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: the lease, >ddc16 behind its first byte: the minimum hold and how long the
--   name is remembered, in microseconds, and the token; then >d, the end of the request,
--   if the first byte is TIMED_RELEASE. It is QUICK_RELEASE if there is no minimum hold
--   and no end. ARGV[2], if there is one: the value that the name keeps from then on.
-- Answers: 1, released; below 0, the server's time, negated: too late, after its end;
--   otherwise as lib/not_held.
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   an exclusive lease, and no claim waits: TIME GET SET
--   the next in the queue gets the name: TIME GET GETEX DETAILS; ZRANGE HGET ZSCORE; HDEL
--     ZREM ZREM; PUBLISH or SPUBLISH; SET
--   a shared lease: TIME GET GETEX DETAILS; ZSCORE; HGET ZSCORE; HDEL ZREM ZREM; SET
--   a minimum hold is left, and a claim waits: ZRANGE HGET ZSCORE; PUBLISH besides
--   a waiter leaves: TIME GET GETEX DETAILS; ZSCORE; ZRANK HDEL ZREM ZREM; and, if it
--     was first and the name is closed or kept, ZRANGE HGET ZSCORE; PUBLISH besides
--   nothing is held: TIME GET GETEX

--- @include lib/layout
--- @include lib/time
--- @include lib/name
--- @include lib/quick_release
local min_hold, keep, token, at = unpack('>ddc16', ARGV[1], 2)
if ARGV[1]:byte() == QUICK_RELEASE and quick_release(S, s, now, token) > 0 then
  return 1
end
if ARGV[1]:byte() == TIMED_RELEASE and not (now <= unpack('>d', ARGV[1], at)) then
  return -now
end
--- @include lib/entry
--- @include lib/place
--- @include lib/not_held
--- @include lib/settled

local place = place_of(token)
local result, kept = 1, false
if place == 'lease' then
  write(ARGV[2], lease.first)
  -- now is earlier than since if the clock ran back.
  local ends = math.min(lease.since, now) + min_hold
  if ends > now then
    -- As after a release, the lease has no delay, and no token can renew it.
    lease.token, lease.delay, lease.expires = ZERO, 0, ends
    keep_until(ends)
    kept = true
  else
    lease = nil
  end
  changed, news = true, true
elseif place == 'h' then
  local rec = record(token)
  local first, weight, limit, since, _, at = unpack(HOLDER, rec, 2)
  local ends = math.min(since, now) + min_hold
  write(ARGV[2], first)
  remove(token)
  if ends > now then
    rec = 'h' .. pack(HOLDER, first, weight, limit, since, 0) .. rec:sub(at)
    put('l' .. pack('>d', first), first, rec, ends)
    leased(ends)
    keep_until(ends)
    kept = true
  else
    held, holders = held - weight, holders - 1
  end
  changed = true
elseif place == 'w' then
  leave(token)
else
  result = not_held(token)
end
promote()
if kept then tell_head() end
save()
return result
