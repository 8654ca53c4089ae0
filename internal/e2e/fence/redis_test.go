package fence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestFencesInRedis(t *testing.T) {
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Start(t).Addr})
	defer c.Close()
	script := goredis.NewScript(fence.RedisScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`))
	write := func(resource string, f uint64) error {
		_, err := script.Run(t.Context(), c, []string{"fence:" + resource, "balance:" + resource}, f, 10).Result()
		return fence.RedisError(err, resource, f)
	}
	fencetest.ChecksStaleWrites(t, write)
	readScript := goredis.NewScript(fence.RedisReaderScript(`return redis.call('GET', KEYS[1])`))
	read := func(resource string, f uint64) error {
		_, err := readScript.Run(t.Context(), c, []string{"fence:" + resource, "balance:" + resource}, f).Result()
		if errors.Is(err, goredis.Nil) { // the key that the script reads is missing
			err = nil
		}
		return fence.RedisError(err, resource, f)
	}
	fencetest.ChecksReadersAndWriters(t, write, read)
	if n := must(c.Get(t.Context(), "balance:account").Int())(t); n != 50 {
		t.Errorf("the balance is %d, want 50", n)
	}
	for _, bad := range []any{0, -1, "one", "", "nan", "inf", "0x7", "1e3", "9007199254740993"} {
		_, err := script.Run(t.Context(), c, []string{"fence:x", "balance:x"}, bad, 10).Result()
		invalid, ok := errors.AsType[*pawl.InvalidError](fence.RedisError(err, "x", 1))
		if !ok || !strings.Contains(invalid.Problem, fmt.Sprint(bad)) {
			t.Errorf("fence %v: %v", bad, err)
		}
	}
	if err := fence.RedisError(script.Run(t.Context(), c, nil).Err(), "x", 1); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("without keys and arguments: %v", err)
	}
	if n := c.Exists(t.Context(), "balance:x").Val(); n != 0 {
		t.Error("the script wrote without a fence")
	}
	for _, foreign := range []string{"", "7", "7 8 9", "seven"} {
		must(c.Set(t.Context(), "fence:foreign", foreign, 0).Result())(t)
		failed, ok := errors.AsType[*pawl.BackendError](write("foreign", 1<<40))
		if !ok || !failed.Permanent || !strings.Contains(failed.Error(), "fence:foreign") {
			t.Errorf("the key of the fences has %q: %v", foreign, failed)
		}
	}
	must(c.Del(t.Context(), "fence:foreign").Result())(t)
	must(c.RPush(t.Context(), "fence:foreign", "7").Result())(t)
	if failed, ok := errors.AsType[*pawl.BackendError](write("foreign", 1<<40)); !ok || !failed.Permanent || !strings.Contains(failed.Error(), "fence:foreign") {
		t.Errorf("the key of the fences has a list: %v", failed)
	}
	if fence.RedisError(nil, "x", 1) != nil || !errors.Is(fence.RedisError(goredis.Nil, "x", 1), goredis.Nil) {
		t.Error("RedisError changed another error")
	}
}
