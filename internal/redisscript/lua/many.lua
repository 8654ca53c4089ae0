-- Several steps on several names, in order: for each key an argument, and for each a number as the answer; then the time.
-- What is not the quick case is answered 0, and is asked again by itself. No error ends the script, for others would be
-- left with no answer. redis.calls: TIME, and for each step GET and SET.
local quick = { a = quick_acquire, r = quick_renew, e = quick_release }
local answers = {}
for i, S in ipairs(KEYS) do
  local s, arg = redis.pcall('GET', S), ARGV[i]
  if type(s) == 'table' then
    answers[i] = 0 -- the error of another type
  else
    answers[i] = quick[arg:sub(1, 1)](S, s, now, arg)
  end
end
answers[#KEYS + 1] = now
return answers
