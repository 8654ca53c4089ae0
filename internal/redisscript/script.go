package redisscript

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"regexp"
	"strings"
)

//go:embed lua/*.lua
var files embed.FS

// A Script is one step, in Lua. Each is atomic, and one round trip when the server knows it already.
type Script struct {
	Name   string
	Source string
	SHA    string // what EVALSHA calls it
}

// Each script is its arguments and, for the frequent ones, the quick case; then the whole algorithm; then the step. The order
// matters: Lua makes the functions of the middle part anew in each run, and the quick case returns before them.
var (
	Acquire = script("acquire", "acquire_fast", "state", "acquire")
	Renew   = script("renew", "renew_fast", "state", "renew")
	Release = script("release", "release_fast", "state", "release")
	Break   = script("break", "break_args", "state", "break")
	Raise   = script("raise", "raise_args", "state", "raise")
	Read    = script("read", "state", "read")
)

var comment = regexp.MustCompile(`(?m)^\s*--.*\n|\s+--\s.*$|^\s+`)

func script(name string, parts ...string) *Script {
	var b strings.Builder
	for _, part := range append([]string{"begin"}, parts...) {
		text, err := files.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // it is embedded
		}
		b.Write(text)
	}
	source := comment.ReplaceAllString(b.String(), "") // it is sent after each restart of the server
	sum := sha1.Sum([]byte(source))                    // it is the name that Redis gives to a script, and no secret
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}
