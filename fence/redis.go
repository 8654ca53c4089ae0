package fence

import (
	"strconv"
	"strings"
)

// RedisScript makes a Lua script that runs write, a script of the caller's, if the fence
// is good, and in the same step: nothing comes between the check and the write. The
// script takes:
//
//   - KEYS[1]: the key of the resource's highest fence, and after it the keys of write.
//     In a cluster they share a hash tag.
//   - ARGV[1]: the fence, in decimal, and after it the arguments of write.
//
// In write KEYS and ARGV are its own, from 1. What it returns is what the script returns.
// If the fence is stale the script returns an error reply, which [RedisError] makes a
// [*StaleError] of, and write does not run.
//
// The highest fence does not expire. A key that is evicted or deleted forgets it: a
// server that evicts keys is no place for it.
func RedisScript(write string) string {
	return redisCheck + "\nlocal KEYS, ARGV = rest(KEYS), rest(ARGV)\n" + write + "\n"
}

// A fence is a whole number below 2^53 for the next two centuries, which is as far as the
// numbers of Lua are exact.
const redisCheck = `local fence = string.match(ARGV[1], '^%d+$') and tonumber(ARGV[1])
if not fence or fence < 1 or fence >= 9007199254740992 then return redis.error_reply('INVALIDFENCE ' .. tostring(ARGV[1])) end
local highest = tonumber(redis.call('GET', KEYS[1]) or '0')
if fence < highest then return redis.error_reply('STALEFENCE ' .. string.format('%.0f', highest)) end
if fence > highest then redis.call('SET', KEYS[1], ARGV[1]) end
local function rest(all)
  local some = {}
  for i = 2, #all do some[i - 1] = all[i] end
  return some
end`

// RedisError makes a [*StaleError] of the error with which a script of [RedisScript]
// refuses a write. Other errors, and nil, it returns as they are.
func RedisError(err error, resource string, fence uint64) error {
	if err == nil {
		return nil
	}
	_, after, found := strings.Cut(err.Error(), "STALEFENCE ")
	if !found {
		return err
	}
	highest, bad := strconv.ParseUint(strings.TrimSpace(after), 10, 64)
	if bad != nil {
		return err
	}
	return &StaleError{resource, fence, highest}
}
