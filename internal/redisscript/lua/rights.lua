-- rights: for the doctor. It tries each command that the scripts call. It returns the
-- commands that the user may not run, and, with a ? before each, those unknown to the
-- server. The key belongs to no name, and rights removes it. A node of a cluster refuses
-- a key of another node, but checks the rights first. The doctor sends it with EVAL.
--
-- KEYS: none, because each node of a cluster runs it.
-- ARGV: the key; the channel to publish on, or ''; the sharded channel, or ''.
-- Answers: a list of commands.
--
-- redis.calls: each command of the other scripts, once

local key, inbox, shard = ARGV[1], ARGV[2], ARGV[3]
local refusals = { 'NOPERM', "can't run", "can't access", "can't publish", 'ACL failure' }
local refused = {}
local function try(command, ...)
  local r = redis.pcall(command, ...)
  local said = type(r) == 'table' and r.err or ''
  if said:find('Unknown Redis command') then refused[#refused + 1] = '?' .. command end
  for _, refusal in ipairs(refusals) do
    if said:find(refusal) then
      refused[#refused + 1] = command
      break
    end
  end
end
try('TIME')
try('GET', key)
try('MGET', key)
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
