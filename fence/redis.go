package fence

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
)

// RedisScript returns a Lua script that runs write, your own script, if the fence is
// good. The check and the write are one step. The arguments of the script are:
//
//   - KEYS[1]: the key of the resource's highest fences, and after it the keys of write.
//     In a cluster all these keys need one hash tag.
//   - ARGV[1]: the fence, in decimal, and after it the arguments of write.
//
// In write, KEYS and ARGV have only its own keys and arguments, from 1. The script
// returns what write returns. If the fence is stale or invalid, write does not run, and
// the script returns an error reply, which [RedisError] converts to a [*StaleError] or a
// [*pawl.InvalidError].
//
// The highest fences do not expire. If the server evicts or deletes a key, the fences are
// lost, so do not use a server that evicts keys.
func RedisScript(write string) string { return redisScript("true", write) }

// RedisReaderScript is RedisScript for a reader of an RWMutex. It runs read unless a
// writer with a higher fence was accepted. The script writes, so it runs on a master. The
// package comment says how to read in several scripts.
func RedisReaderScript(read string) string { return redisScript("false", read) }

func redisScript(writes, script string) string {
	return strings.Replace(redisCheck, "WRITES", writes, 1) + "\nlocal KEYS, ARGV = rest(KEYS), rest(ARGV)\n" + script + "\n"
}

// A fence is a whole number below 2^53 for the next two centuries, so the numbers of Lua
// are exact. The key has two numbers: the highest fence of the writers, and the highest
// fence of all.
const redisCheck = `local writes = WRITES
local fence = KEYS[1] and ARGV[1] and string.match(ARGV[1], '^%d+$') and tonumber(ARGV[1])
if not fence or fence < 1 or fence >= 9007199254740992 then return redis.error_reply('INVALIDFENCE ' .. tostring(ARGV[1])) end
local stored = redis.pcall('GET', KEYS[1]) or '0 0'
if type(stored) == 'table' and not string.find(stored.err, 'WRONGTYPE') then return stored end
local written, seen = string.match(type(stored) == 'string' and stored or '', '^(%d+) (%d+)$')
if not seen then return redis.error_reply('NOFENCE the key ' .. KEYS[1] .. ' has something else than fences') end
written, seen = tonumber(written), tonumber(seen)
local highest = writes and seen or written
if fence < highest then return redis.error_reply('STALEFENCE ' .. string.format('%.0f', highest)) end
if writes then written = fence end
local updated = string.format('%.0f %.0f', written, math.max(seen, fence))
if updated ~= stored then redis.call('SET', KEYS[1], updated) end
local function rest(all)
  local some = {}
  for i = 2, #all do some[i - 1] = all[i] end
  return some
end`

// RedisError converts the error reply of a script of [RedisScript] or
// [RedisReaderScript]: to a [*StaleError]; to a [*pawl.InvalidError] if the number is no
// fence; or to a [*pawl.BackendError] that is Permanent if the key of the fences has
// another value. It returns other errors, and nil, unchanged.
func RedisError(err error, resource string, fence uint64) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if _, sent, found := strings.Cut(text, "INVALIDFENCE"); found {
		return &pawl.InvalidError{Argument: "fence", Problem: "is " + strconv.Quote(strings.TrimSpace(sent)), Allowed: "what Lease.Fence returned, as the first argument of the script"}
	}
	if _, detail, _ := strings.Cut(text, "NOFENCE "); detail != "" {
		failed := backendError("redis", "check the fence for", resource, errors.New(detail))
		failed.Permanent, failed.Hint = true, "give the fences a key of their own, as the first key of the script"
		return failed
	}
	_, after, found := strings.Cut(text, "STALEFENCE ")
	if !found {
		return err
	}
	highest, parseErr := strconv.ParseUint(strings.TrimSpace(after), 10, 64)
	if parseErr != nil {
		return err
	}
	return &StaleError{resource, fence, highest}
}
