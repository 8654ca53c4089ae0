package redisscript

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file sends steps: together with the steps of others if possible, otherwise by a
// script of their own.

// shares reports whether a step on this name may share a script with others.
func (d *Driver) shares(name string) bool { return !d.client.Cluster && !d.busy.is(name) }

// quickly takes a step together with others, if there are any. If done is false, the
// caller sends the step by itself. In both cases the caller then calls coalescer.endStep.
func (d *Driver) quickly(ctx context.Context, now time.Time, name string, q quickStep) (p Reply, done bool) {
	answer, first, err := d.coalescer.do(ctx, now, name, q)
	if err != nil || answer != 0 {
		return Reply{Int: answer, Err: err}, true
	}
	if !first {
		d.busy.note(name)
	}
	return Reply{}, false
}

// runAllQuickly runs calls that have one argument each, many of them in one script.
// Afterwards it runs the calls that are not quick cases by themselves.
func (d *Driver) runAllQuickly(ctx context.Context, s *Script, calls []Call) []Reply {
	if d.client.Cluster || len(calls) == 1 {
		return d.runAll(ctx, s, calls)
	}
	var scripts []Call
	for some := range slices.Chunk(calls, maxStepsPerScript) {
		c := Call{Args: []string{""}}
		for _, one := range some {
			c.Keys, c.Args = append(c.Keys, one.Keys[0]), append(c.Args, one.Args[0])
		}
		scripts = append(scripts, c)
	}
	replies := make([]Reply, len(calls))
	var rest []Call
	var where []int
	sent := time.Now()
	for i, p := range runScripts(ctx, d.conn, Many, scripts) {
		if n := len(scripts[i].Keys); p.Err == nil && len(p.List) == n+1 {
			d.clock.learn(p.List[n], sent)
		}
		for k := range scripts[i].Keys {
			at := i*maxStepsPerScript + k
			switch {
			case p.Err != nil && !refused(p.Err):
				replies[at].Err = p.Err
			case p.Err == nil && len(p.List) > k && p.List[k] != 0:
				replies[at].Int = p.List[k]
			default:
				rest, where = append(rest, calls[at]), append(where, at)
			}
		}
	}
	if len(rest) > 0 {
		for i, p := range d.runAll(ctx, s, rest) {
			replies[where[i]] = p
		}
	}
	return replies
}

// run runs a script on all keys of a name. A cluster that is moving a slot refuses that
// for most names, see details() in lua/lib/entry.lua. Then run tries the first key alone,
// which may be enough.
func (d *Driver) run(ctx context.Context, s *Script, c Call) Reply {
	p := runScript(ctx, d.conn, s, c, false)
	if moving(p.Err) {
		c.Keys = c.Keys[:1]
		p = runScript(ctx, d.conn, s, c, false)
	}
	return p
}

func (d *Driver) runAll(ctx context.Context, s *Script, calls []Call) []Reply {
	all := runScripts(ctx, d.conn, s, calls)
	for i := range all {
		if moving(all[i].Err) {
			all[i] = d.run(ctx, s, calls[i])
		}
	}
	return all
}

func moving(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") }

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
