package redisscript

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/driver"
)

// These tests check the rules for the files in lua/. They run no script, because
// drivertest does. internal/e2e/redis checks which names a script uses.

// luaFiles returns the sources by their names without lua/ and .lua.
func luaFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), "lua", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimSuffix(strings.TrimPrefix(path, "lua/"), ".lua")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEachScriptBeginsWithAHeader(t *testing.T) {
	included := map[string]bool{}
	for name, text := range luaFiles(t) {
		for _, m := range regexp.MustCompile(`(?m)^--- @include (.*)$`).FindAllStringSubmatch(text, -1) {
			included[m[1]] = true
		}
		if strings.HasPrefix(name, "lib/") {
			continue
		}
		if !slices.ContainsFunc(scripts, func(s *Script) bool { return s.Name == name }) {
			t.Errorf("scripts does not have lua/%s.lua", name)
		}
		header, _, _ := strings.Cut(text, "\n\n")
		for _, want := range []string{"-- " + name + ": ", "\n-- KEYS", "\n-- ARGV", "\n-- Answers:", "\n-- redis.calls:"} {
			if !strings.Contains("\n"+header, want) {
				t.Errorf("the header of lua/%s.lua has no %q", name, strings.TrimSpace(want))
			}
		}
	}
	for name := range luaFiles(t) {
		if strings.HasPrefix(name, "lib/") && !included[name] {
			t.Errorf("no file includes lua/%s.lua", name)
		}
	}
}

func TestLuaIsNoWiderThan90Columns(t *testing.T) {
	for name, text := range luaFiles(t) {
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > 90 {
				t.Errorf("lua/%s.lua:%d has %d columns", name, i+1, n)
			}
		}
	}
}

// Lua and Go have constants for the values in which they must agree.
func TestTheConstantsOfTheScriptsAreThoseOfGo(t *testing.T) {
	a := assembly{constants: map[string]string{}}
	a.addFile("lib/layout")
	if a.out.Len() > 0 {
		t.Errorf("lib/layout has more than constants: %s", a.out.String())
	}
	field := regexp.MustCompile(`c16|I4|[Bd]`)
	size := func(format string) (n int64) {
		for _, f := range field.FindAllString(format, -1) {
			n += map[string]int64{"B": 1, "I4": 4, "d": 8, "c16": 16}[f]
		}
		return n
	}
	for name, want := range map[string]int64{
		"HEAD_SIZE":           size(a.constants["HEAD"]),
		"HEAD_AND_LEASE_SIZE": size(a.constants["HEAD"]) + size(a.constants["LEASE"]),
		"QUEUE_FROM":          1 << 52,
		"NEVER":               1 << 53,
		"EXCLUSIVE":           driver.Exclusive,
		"MAX_LEAD":            driver.MaxLead.Microseconds(),
		"SIGNAL_RETRY":        int64(driver.SignalRetry),
		"SIGNAL_GRANTED":      int64(driver.SignalGranted),
		"SIGNAL_LOST":         int64(driver.SignalLost),
		"QUICK_ACQUIRE":       quickAcquire,
		"QUICK_RENEW":         quickRenew,
		"VALUE_RENEW":         valueRenew,
		"QUICK_RELEASE":       quickRelease,
		"TIMED_RELEASE":       timedRelease,
		"VERSION":             storedVersion,
		"WAY_PLAIN":           wayPlain,
		"WAY_SLOT":            waySlot,
	} {
		if got := a.constants[name]; got != strconv.FormatInt(want, 10) {
			t.Errorf("%s is %s in lua/lib/layout.lua, and %d in Go", name, got, want)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files")

// scripts has all scripts that are sent.
var scripts = []*Script{Acquire, Force, Renew, Release, Break, Raise, Read, Confirm, Watch, Many, States, All, rightsScript}

// sent/ has the scripts as they are sent, so that a diff shows every change of them. They
// are made of lua/: after a change there, run this test with -update.
func TestSentHasTheScriptsOfLua(t *testing.T) {
	for _, s := range scripts {
		made := assembled(s.Name)
		if *update {
			if err := os.WriteFile(filepath.Join("sent", s.Name+".lua"), []byte(made), 0o600); err != nil {
				t.Fatal(err)
			}
			continue // this binary has the old files
		}
		if s.Source != made {
			t.Errorf("sent/%s.lua is not what lua/%s.lua makes: run this test with -update", s.Name, s.Name)
		}
	}
}
