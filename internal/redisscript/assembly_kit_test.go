package redisscript

import (
	"os"
	"strings"
)

// assembled returns the script that is made of lua/NAME.lua.
func assembled(name string) string {
	a := assembly{constants: map[string]string{}}
	a.addFile(name)
	return a.out.String()
}

// An assembly makes a script of lua/NAME.lua. It includes each file at the line that
// names it, not at the top: Lua creates a function when a run reaches the function, and a
// quick case returns before most of them. The assembly leaves out comments and
// indentation, and replaces the names of constants by their values.
type assembly struct {
	out       strings.Builder
	constants map[string]string
}

func (a *assembly) addFile(name string) {
	text, err := os.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimSpace(line)
		if part, ok := strings.CutPrefix(line, "--- @include "); ok {
			a.addFile(part)
			continue
		}
		if strings.HasPrefix(line, "--") || line == "" {
			continue
		}
		code, _, _ := strings.Cut(line, " -- ")
		a.addLine(strings.TrimSpace(code))
	}
}

// addLine adds a line of code, with the values of the constants that it names.
func (a *assembly) addLine(code string) {
	if rest, ok := strings.CutPrefix(code, "local "); ok {
		if name, value, ok := strings.Cut(rest, " = "); ok && isConstant(name) {
			a.constants[name] = value
			return
		}
	}
	for i := 0; i < len(code); {
		n := tokenSize(code[i:])
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

// tokenSize returns the size of the string, the word, or the other character with which
// code begins.
func tokenSize(code string) int {
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
	for n < len(code) && isWordByte(code[n]) {
		n++
	}
	return max(n, 1)
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
