package redisscript

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed lua/*.lua lua/lib/*.lua
var files embed.FS

// A Script is one step, in Lua. Each is atomic, and one round trip when the server knows
// it already.
type Script struct {
	Name   string
	Source string
	SHA    string // what EVALSHA calls it
}

// The scripts of one name. Each is a file of its own, whose header says what it takes,
// answers and calls; redislock/cost_test.go counts the calls.
var (
	Acquire = script("acquire")
	Force   = script("force")
	Renew   = script("renew")
	Release = script("release")
	Break   = script("break")
	Raise   = script("raise")
	Read    = script("read")
	Confirm = script("confirm")
)

// Many runs the quick cases of several steps on as many names.
var Many = script("many")

// script makes a script of lua/NAME.lua: it takes in what that includes, in that order,
// for Lua makes the functions of the algorithm anew in each run, and a quick case returns
// before them. What is left out is not sent: comments, indentation, and constants, whose
// values are put where their names are.
func script(name string) *Script {
	a := assembly{constants: map[string]string{}}
	a.file(name)
	source := a.out.String()
	sum := sha1.Sum([]byte(source)) // what Redis calls it, and no secret
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

// An assembly is a script while it is made. Regular expressions would be shorter, and
// take each program that imports this 10 ms of its start.
type assembly struct {
	out       strings.Builder
	constants map[string]string
}

func (a *assembly) file(name string) {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimSpace(line)
		if part, ok := strings.CutPrefix(line, "--- @include "); ok {
			a.file(part)
			continue
		}
		if strings.HasPrefix(line, "--") || line == "" {
			continue
		}
		code, _, _ := strings.Cut(line, " -- ")
		a.line(strings.TrimSpace(code))
	}
}

// line takes a line of code, with the constants that it names.
func (a *assembly) line(code string) {
	if rest, ok := strings.CutPrefix(code, "local "); ok {
		if name, value, ok := strings.Cut(rest, " = "); ok && isConstant(name) {
			a.constants[name] = value
			return
		}
	}
	for i := 0; i < len(code); {
		n := token(code[i:])
		if value, ok := a.constants[code[i:i+n]]; ok {
			a.out.WriteString(value)
		} else {
			a.out.WriteString(code[i : i+n])
		}
		i += n
	}
	a.out.WriteByte('\n')
}

func isConstant(name string) bool {
	return len(name) > 1 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// token is how long the string, the word or the other character is with which code
// begins.
func token(code string) int {
	if quote := code[0]; quote == '\'' || quote == '"' {
		for i := 1; i < len(code); i++ {
			switch code[i] {
			case '\\':
				i++
			case quote:
				return i + 1
			}
		}
		return len(code)
	}
	n := 0
	for n < len(code) && inWord(code[n]) {
		n++
	}
	return max(n, 1)
}

func inWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
