-- raise: makes the fence of a lease at least as high as the one that another node of a
-- quorum granted.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: >c16dd: the token; the fence that is wanted; and how long the name is
--   remembered, in microseconds.
-- ARGV[2], if there is one: the value that the name keeps from then on, unless this lease
--   has already written one.
-- Answers:
--   a number above 0: the first fence that the lease has now, not below the wanted one
--   'h', see lib/refusal: with the leases granted since, it would exceed its limit
--   otherwise as lib/not_held
--   an error PAWLFENCE: there are no fences as high as that
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   an exclusive lease: TIME GET GETEX; SET
--   a shared one: TIME GET GETEX DETAILS; ZSCORE; HGET ZSCORE; HSET ZADD; SET
--   nothing is held: TIME GET GETEX

--- @include lib/layout
--- @include lib/time
--- @include lib/name
local token, wanted, keep = unpack('>c16dd', ARGV[1])
--- @include lib/entry
--- @include lib/place
--- @include lib/refusal
--- @include lib/not_held
--- @include lib/settled

local place, first = place_of(token)
local rec, at, weight, limit
local fences, own = 1, place == 'lease' or place == 'h'
if place == 'lease' then
  first, fences = lease.first, lease.fences
elseif place == 'h' then
  rec = record(token)
  first, weight, limit, at = unpack('>dI4I4', rec, 2) -- of HOLDER
end
local wrote = place == 'lease' and value_fence == first
  or place == 'h' and rec:sub(1, 1) == 'H'
local writes = not wrote and ARGV[2] or nil
wrote = wrote or writes
if not own or first >= wanted then
  if own then write(writes, first) end
  if rec and writes then call('HSET', D, token, 'H' .. rec:sub(2)) end
  local result = own and first or not_held(token)
  save()
  return result
end

-- The lease becomes the last one granted, because holders are in the order of their
-- fences, and no two leases have the same fence.
if fence > first + fences - 1 then -- other leases were granted since
  wanted = math.max(wanted, fence + 1)
end
if place == 'h' and held > limit then -- with the others it would not have been granted
  save()
  return refusal(0, weight, limit, nil, token)
end
if wanted + fences - 1 >= QUEUE_FROM then
  save()
  return redis.error_reply('PAWLFENCE there are no fences as high as that')
end
if place == 'lease' then
  lease.first = wanted
else
  rec = pack('>dI4I4', wanted, weight, limit) .. rec:sub(at)
  call('HSET', D, token, (wrote and 'H' or 'h') .. rec)
  call('ZADD', L, wanted, token)
end
fence, changed, news = wanted + fences - 1, true, true
if value_fence == first then value_fence = wanted end
write(writes, wanted)
keep_until(fence) -- it is remembered until the clock has passed it
save()
return wanted
