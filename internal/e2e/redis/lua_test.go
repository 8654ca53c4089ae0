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

// predefined has the global names of Redis that the scripts use.
var predefined = []string{
	"ARGV", "KEYS", "redis", "struct", "math", "string", "table",
	"error", "ipairs", "tonumber", "tostring", "type", "unpack",
}

func TestScriptsUseNoUndeclaredName(t *testing.T) {
	sent, err := filepath.Glob("../../redisscript/sent/*.lua")
	if err != nil || len(sent) < 10 {
		t.Fatalf("%d scripts: %v", len(sent), err)
	}
	for _, file := range sent {
		source, err := os.ReadFile(file)
		noError(t, err)
		for _, name := range globals(t, string(source)) {
			if !slices.Contains(predefined, name) {
				t.Errorf("%s uses %q, which is neither local nor predefined", filepath.Base(file), name)
			}
		}
	}
}

func TestUndeclaredNamesAreFound(t *testing.T) {
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
	var visit func(*lua.FunctionProto)
	visit = func(f *lua.FunctionProto) {
		const opcodeShift, constantMask = 26, 1<<18 - 1 // the shift and the mask in an instruction of gopher-lua
		for _, code := range f.Code {
			if op := int(code >> opcodeShift); op == lua.OP_GETGLOBAL || op == lua.OP_SETGLOBAL {
				names = append(names, f.Constants[code&constantMask].String())
			}
		}
		for _, inner := range f.FunctionPrototypes {
			visit(inner)
		}
	}
	visit(compiled)
	slices.Sort(names)
	return slices.Compact(names)
}
