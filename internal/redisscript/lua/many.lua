-- Several steps on several names, in order: for each key an argument, and for each a number as the answer; then the time.
-- What is not the quick case is answered 0, and is asked again by itself. No error ends the script, for others would be
-- left with no answer. redis.calls: TIME, and for each step GET and SET.
--
-- ARGV[1] is what claims have in common; empty if there are none. ARGV[1 + i] is about KEYS[i]. Its length is its kind: 16
-- bytes are a token to release; 20 a token to grant, and how many microseconds before the common end its own one is.
-- Others are what a script of one name has first.
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
    answers[i] = 0 -- the error of another type
  elseif n == 16 then
    answers[i] = quick_release(S, s, now, arg)
  elseif n == 20 then
    answers[i] = quick_acquire(S, s, now, ttl, keep, 0, ends - unpack('>I4', arg, 17), 1, '\0\0\0\1' .. arg:sub(1, 16) .. holder)
  elseif arg:byte() == 97 then -- 'a'
    local its, kept, wish, by, run = unpack('>ddddI4', arg, 2)
    answers[i] = quick_acquire(S, s, now, its, kept, wish, by, run, arg:sub(34))
  elseif arg:byte() == 114 then -- 'r'
    answers[i] = quick_renew(S, s, now, arg)
  else
    answers[i] = 0
  end
end
answers[#KEYS + 1] = now
return answers
