-- break: ends the lease with a given fence. It notifies the holder, and stores for the
-- holder who broke the lease.
--
-- KEYS: S, D, L and E of the name, as lib/layout has them. S alone while a cluster moves
--   the slot of the name; S is enough if the name has no details.
-- ARGV[1]: >ddd: the fence; how long the name is closed, and how long it is
--   remembered, in microseconds.
-- ARGV[2]: who breaks the lease, as locktable.AppendOwner writes it.
-- Answers: 1, broken; 0, no lease has that fence.
--
-- redis.calls: (DETAILS is ZCARD HLEN ZCARD, see count in lib/entry)
--   an exclusive lease: TIME GET GETEX; UNLINK HSET ZADD ZADD to store who
--     broke it; PUBLISH; 3 PEXPIRE SET
--   a shared one: TIME GET GETEX DETAILS; ZRANGEBYSCORE; HGET ZSCORE; HDEL ZREM ZREM;
--     HSET ZADD ZADD; PUBLISH; SET
--   then for each waiter that is granted the name: as in release
--   if the name is closed, and a claim waits: ZRANGE HGET ZSCORE; PUBLISH

--- @include lib/layout
--- @include lib/time
--- @include lib/name
local wanted, delay, keep = unpack('>ddd', ARGV[1])
--- @include lib/entry
--- @include lib/take
--- @include lib/settled

local id
if not (lease and lease.first <= wanted and wanted - lease.first < lease.fences) then
  id = size > 0 and call('ZRANGEBYSCORE', L, wanted, wanted)[1]
  if not id then
    save()
    return 0
  end
end
take(id, ARGV[2])
if delay > 0 then
  closed = math.max(closed, now + delay)
  keep_until(closed)
end
promote()
if delay > 0 then tell_head() end
save()
return 1
