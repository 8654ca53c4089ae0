-- For the doctor: tries what the scripts call, and answers with what the user may not. The key is nobody's and is gone
-- afterwards; a node of a cluster refuses a key of another one, but looks at the rights first.
local key, inbox, shard = ARGV[1], ARGV[2], ARGV[3]
local refused = {}
local function try(command, ...)
  local r = redis.pcall(command, ...)
  local said = type(r) == 'table' and r.err or ''
  if said:find('NOPERM') or said:find("can't run") or said:find("can't access") or said:find("can't publish") or said:find('ACL failure') then
    refused[#refused + 1] = command
  end
end
try('TIME')
try('GET', key)
try('GETEX', key)
try('SET', key, '', 'XX')
try('PEXPIRE', key, 1)
try('PTTL', key)
try('HSET', key, 'x', '')
try('HGET', key, 'x')
try('HDEL', key, 'x')
try('HLEN', key)
try('UNLINK', key)
try('ZADD', key, 'XX', 1, 'x')
try('ZREM', key, 'x')
try('ZCARD', key)
try('ZRANGE', key, 0, 0)
try('ZRANGEBYSCORE', key, 0, 0)
try('ZRANK', key, 'x')
try('ZSCORE', key, 'x')
if inbox ~= '' then try('PUBLISH', inbox, '') end
if shard ~= '' then try('SPUBLISH', shard, '') end
return refused
