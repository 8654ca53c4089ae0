package redis_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// offered has what Redis offers to scripts, as far as our scripts use it.
var offered = []string{
	"ARGV", "KEYS", "redis", "struct", "math", "string", "table",
	"error", "ipairs", "tonumber", "tostring", "type", "unpack",
}

func TestScriptsUseNoNameThatRedisDoesNotOffer(t *testing.T) {
	sent, err := filepath.Glob("../../redisscript/sent/*.lua")
	if err != nil || len(sent) < 10 {
		t.Fatalf("only %d scripts are there: %v", len(sent), err)
	}
	for _, file := range sent {
		source, err := os.ReadFile(file)
		noError(t, err)
		for _, name := range globals(t, string(source)) {
			if !slices.Contains(offered, name) {
				t.Errorf("%s uses %q, which is neither local nor offered", filepath.Base(file), name)
			}
		}
	}
}

func TestNamesThatAreNotDeclaredAreFound(t *testing.T) {
	for source, want := range map[string]string{
		"local a = 1 return a":                        "",
		"local function f() return a end local a = 1": "a",
		"a = 1":                      "a",
		"local s = VERSION return s": "VERSION",
		"local function f() return function() b() end end":   "b",
		"local t = {} function t.f() end return t.f(t.ARGV)": "",
	} {
		if got := strings.Join(globals(t, source), " "); got != want {
			t.Errorf("in %q the names %q are not declared, want %q", source, got, want)
		}
	}
}

// globals returns the names that a script uses and does not declare.
func globals(t *testing.T, source string) (names []string) {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(source), "script")
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	compiled, err := lua.Compile(chunk, "script")
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	var look func(*lua.FunctionProto)
	look = func(f *lua.FunctionProto) {
		const opcode, constant = 26, 1<<18 - 1 // their positions in an instruction of gopher-lua
		for _, code := range f.Code {
			if op := int(code >> opcode); op == lua.OP_GETGLOBAL || op == lua.OP_SETGLOBAL {
				names = append(names, f.Constants[code&constant].String())
			}
		}
		for _, inner := range f.FunctionPrototypes {
			look(inner)
		}
	}
	look(compiled)
	slices.Sort(names)
	return slices.Compact(names)
}
