call('GETEX', S) -- it changes nothing, but a script that has written may go on when memory is full
settle()
local id
if not (lease and lease.first <= wanted and wanted - lease.first < lease.run) then
  id = size > 0 and call('ZRANGEBYSCORE', L, wanted, wanted)[1]
  if not id then
    save()
    return 0
  end
end
take(id, ARGV[2])
if delay > 0 then
  closed = math.max(closed, now + delay)
  raise(closed)
end
promote()
save()
return 1
