package redisscript

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strconv"
)

//go:embed sent/*.lua
var files embed.FS

// A Script is one step, in Lua. It is atomic, and takes one round trip if the server
// already knows it.
type Script struct {
	Name   string
	Source string
	SHA    string   // the name of the script for EVALSHA
	words  []string // EVALSHA, the SHA, and the number of keys of one name
}

// The scripts that work on one name. The header of each file says what the script takes
// and answers, and which commands it calls; redislock/cost_test.go counts these.
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

// script loads the text of a script from sent/NAME.lua. The tests generate that file from
// lua/NAME.lua. Generating it at start-up would cost each program that imports this
// package 2 ms.
func script(name string) *Script {
	source, err := files.ReadFile("sent/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha1.Sum(source) // EVALSHA requires SHA-1; it is not a signature
	s := &Script{Name: name, Source: string(source), SHA: hex.EncodeToString(sum[:])}
	s.words = []string{"EVALSHA", s.SHA, strconv.Itoa(len(keyLetters))}
	return s
}
