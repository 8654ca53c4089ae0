package redisscript

import (
	"context"
	"strconv"
	"strings"
)

func isSlotMoving(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") }

func (s *Script) command(c Call) Command {
	words := s.words
	if len(c.Keys) != len(keyLetters) {
		words = []string{"EVALSHA", s.SHA, strconv.Itoa(len(c.Keys))}
	}
	return Command{Words: words, Call: c}
}

// evalWords returns the words before the keys of a call that sends the script itself.
func (s *Script) evalWords(keys int) []string { return []string{"EVAL", s.Source, strconv.Itoa(keys)} }

// isNoScript reports whether the server does not have the script: it was restarted, or
// another node has taken over.
func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

// run runs a script. It sends the script itself if the server does not have it.
//
// A cluster that is moving the slot refuses a script on several keys, see details() in
// lua/lib/entry.lua. Then run tries the first key of the name alone, which usually
// suffices.
func run(ctx context.Context, conn Conn, s *Script, c Call) Reply {
	command := s.command(c)
	p := conn.Do(ctx, command)
	if isNoScript(p.Err) {
		command.Words = s.evalWords(len(c.Keys))
		p = conn.Do(ctx, command)
	}
	if isSlotMoving(p.Err) && c.oneName && len(c.Keys) > 1 {
		c.Keys = c.Keys[:1]
		return run(ctx, conn, s, c)
	}
	return p
}

// runAll runs a script once for each call, in a pipeline. The calls of one name run in
// order.
func runAll(ctx context.Context, conn Conn, s *Script, calls []Call) []Reply {
	if len(calls) == 0 {
		return nil
	}
	all := make([]Command, len(calls))
	for i, c := range calls {
		all[i] = s.command(c)
	}
	replies := conn.DoMany(ctx, all, false)
	for i, p := range replies {
		if isNoScript(p.Err) || isSlotMoving(p.Err) { // the first one loads the script
			replies[i] = run(ctx, conn, s, calls[i])
		}
	}
	return replies
}
