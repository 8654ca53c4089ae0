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

// Each script of one name is its quick case, if it has one; its arguments; then the algorithm, as much as is needed of it; then
// the step. The order matters: Lua makes the functions of the algorithm anew in each run, and the quick case returns
// before them.
var (
	Acquire = script("acquire", "time", "begin", "quick_acquire", "acquire_args", "state", "stands", "extend", "again", "people", "acquire")
	Force   = script("force", "time", "begin", "quick_acquire", "acquire_args", "state", "stands", "extend", "again", "take", "force")
	Renew   = script("renew", "time", "begin", "quick_renew", "renew_args", "state", "stands", "extend", "gone", "lasts", "renew")
	Release = script("release", "time", "begin", "quick_release", "release_args", "state", "stands", "gone", "release")
	Break   = script("break", "time", "begin", "break_args", "state", "take", "break")
	Raise   = script("raise", "time", "begin", "raise_args", "state", "stands", "people", "gone", "raise")
	Read    = script("read", "time", "begin", "state", "people", "read")
)

// Many runs the quick cases of several steps on as many names: KEYS[i] is the state of the name for which ARGV[i] is what
// the script of one step has first. It answers with a list of numbers; 0 says that it was not the quick case.
var Many = script("many", "time", "quick_acquire", "quick_renew", "quick_release", "many")

var comment = regexp.MustCompile(`(?m)^\s*--.*\n|\s+--\s.*$|^\s+`)

func script(name string, parts ...string) *Script {
	var b strings.Builder
	for _, part := range parts {
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
