package redisscript

import (
	"context"
	"strconv"
	"strings"
)

// run runs a script on all keys of a name. A cluster that is moving the slot refuses a
// script on several keys, see details() in lua/lib/entry.lua. Then run tries the first
// key alone, which usually suffices.
func (d *Driver) run(ctx context.Context, s *Script, c Call) Reply {
	p := runScript(ctx, d.conn, s, c, false)
	if isSlotMoving(p.Err) {
		c.Keys = c.Keys[:1]
		p = runScript(ctx, d.conn, s, c, false)
	}
	return p
}

// runAll is run for several calls, in one pipeline.
func (d *Driver) runAll(ctx context.Context, s *Script, calls []Call) []Reply {
	all := runScripts(ctx, d.conn, s, calls)
	for i := range all {
		if isSlotMoving(all[i].Err) {
			all[i] = d.run(ctx, s, calls[i])
		}
	}
	return all
}

func isSlotMoving(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") }

func (s *Script) command(c Call) Command {
	words := s.words
	if len(c.Keys) != len(letters) {
		words = []string{"EVALSHA", s.SHA, strconv.Itoa(len(c.Keys))}
	}
	return Command{Words: words, Call: c}
}

// evalWords returns the words before the keys of a call that sends the script itself.
func (s *Script) evalWords(keys int) []string { return []string{"EVAL", s.Source, strconv.Itoa(keys)} }

// isNoScript reports whether the server does not have the script: it was restarted, or
// another node has taken over.
func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

// runScript runs a script on the keys of one or several names, with ownConn on a
// connection without other requests. It sends the script itself if the server does not
// have it.
func runScript(ctx context.Context, conn Conn, s *Script, c Call, ownConn bool) Reply {
	command := s.command(c)
	command.OwnConn = ownConn
	p := conn.Do(ctx, command)
	if isNoScript(p.Err) {
		command.Words = s.evalWords(len(c.Keys))
		p = conn.Do(ctx, command)
	}
	return p
}

// runScripts runs a script once for each call, in a pipeline. The calls of one name run
// in order.
func runScripts(ctx context.Context, conn Conn, s *Script, calls []Call) []Reply {
	if len(calls) == 0 {
		return nil
	}
	all := make([]Command, len(calls))
	for i, c := range calls {
		all[i] = s.command(c)
	}
	replies := conn.DoMany(ctx, all, false)
	for i, p := range replies {
		if isNoScript(p.Err) { // the first one loads the script
			replies[i] = runScript(ctx, conn, s, calls[i], false)
		}
	}
	return replies
}
