package redisscript

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
)

//go:embed sent/*.lua
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
	Watch   = script("watch")
)

// Many runs the quick cases of several steps on as many names.
var Many = script("many")

// States reads the stored states of many names.
var States = script("states")

// All takes claims of several names, all or none.
var All = script("all")

// script loads a script as it is sent, from sent/NAME.lua. The tests make that file of
// lua/NAME.lua: making it at start-up would cost each program that imports this package 2
// ms.
func script(name string) *Script {
	source, err := files.ReadFile("sent/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha1.Sum(source) // the name that Redis has for it, not a signature
	return &Script{Name: name, Source: string(source), SHA: hex.EncodeToString(sum[:])}
}
