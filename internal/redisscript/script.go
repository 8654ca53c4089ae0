package redisscript

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strconv"
	"strings"
)

//go:embed sent/*.lua
var files embed.FS

// A Script is one step, in Lua. It is atomic, and takes one round trip if the server
// already knows it.
type Script struct {
	Name   string
	Source string
	SHA    string   // the name of the script for EVALSHA
	words  []string // before the keys of one name
}

// The scripts that work on one name. Each is a file, whose header says what the script
// takes, answers and calls; redislock/cost_test.go counts the calls.
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

// script loads a script as it is sent, from sent/NAME.lua. The tests make that file from
// lua/NAME.lua, because making it at start-up would cost each program that imports this
// package 2 ms.
func script(name string) *Script {
	source, err := files.ReadFile("sent/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha1.Sum(source) // the name that Redis has for it, not a signature
	s := &Script{Name: name, Source: string(source), SHA: hex.EncodeToString(sum[:])}
	s.words = []string{"EVALSHA", s.SHA, "4"}
	return s
}

// command makes the command of a call.
func (s *Script) command(c Call) Command {
	words := s.words
	if len(c.Keys) != 4 {
		words = []string{"EVALSHA", s.SHA, strconv.Itoa(len(c.Keys))}
	}
	return Command{Words: words, Call: c}
}

// text are the words before the keys of a call that sends the text of the script.
func (s *Script) text(keys int) []string { return []string{"EVAL", s.Source, strconv.Itoa(keys)} }

// unknown reports whether the server does not know the script: it was restarted, or
// another node has taken over.
func unknown(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

// runScript runs a script on the keys of one name, or in common on those of several, and
// sends its text if the server does not know it.
func runScript(ctx context.Context, on Conn, s *Script, c Call, aside bool) Reply {
	command := s.command(c)
	command.Aside = aside
	p := on.Do(ctx, command)
	if unknown(p.Err) {
		command.Words = s.text(len(c.Keys))
		p = on.Do(ctx, command)
	}
	return p
}

// runScripts runs a script for each of the calls, pipelined. The calls of one name are
// run in order.
func runScripts(ctx context.Context, on Conn, s *Script, calls []Call) []Reply {
	all := make([]Command, len(calls))
	for i, c := range calls {
		all[i] = s.command(c)
	}
	replies := on.DoMany(ctx, all, false)
	for i, p := range replies {
		if unknown(p.Err) { // the first one loads the script
			replies[i] = runScript(ctx, on, s, calls[i], false)
		}
	}
	return replies
}
