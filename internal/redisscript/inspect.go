package redisscript

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Inspect implements driver.Driver.
func (d *Driver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := errors.Join(driver.ValidateName(name), d.ready(ctx)); err != nil {
		return driver.Entry{}, err
	}
	p := d.resendIfLost(ctx, func() Reply { return run(ctx, d.conn, Read, d.call(name)) })
	return d.entryOf(ctx, name, p)
}

func (d *Driver) entryOf(ctx context.Context, name string, p Reply) (driver.Entry, error) {
	var seen driver.Entry
	if p.Err == nil {
		seen, p.Err = readEntry(p.Text, name)
	}
	if p.Err != nil {
		p.Err = d.wrapErr(ctx, "read", name, p.Err)
	}
	return seen, p.Err
}

// pageSize is the number of entries that one script, or one pipeline, reads.
const pageSize = 100

// List implements driver.Lister. It scans the whole keyspace of each master. That takes a
// while if there is much other data, but blocks no other client.
func (d *Driver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		if err := d.ready(ctx); err != nil {
			yield(driver.Entry{}, err)
			return
		}
		found := map[string]bool{}
		for key, err := range d.scan(ctx, statePattern(d.Prefix, prefix)) {
			if err != nil {
				yield(driver.Entry{}, d.wrapErr(ctx, "list", prefix, err))
				return
			}
			if name, ok := nameOf(d.Prefix, key); ok && strings.HasPrefix(name, prefix) {
				found[name] = true
			}
		}
		for names := range slices.Chunk(slices.Sorted(maps.Keys(found)), pageSize) {
			if !d.readPage(ctx, names, yield) {
				return
			}
		}
	}
}

// scan yields the keys that match a pattern, on each master. It may yield a key twice.
func (d *Driver) scan(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		masters, err := d.conn.nodes(ctx, true)
		if err != nil {
			yield("", err)
		}
		for _, node := range masters {
			for cursor := "0"; ; {
				p := node.Do(ctx, Command{Words: []string{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}})
				if p.Err == nil && len(p.Words) == 0 {
					p.Err = errEmpty
				}
				if p.Err != nil {
					yield("", p.Err)
					return
				}
				for _, key := range p.Words[1:] {
					if !yield(key, nil) {
						return
					}
				}
				if cursor = p.Words[0]; cursor == "0" {
					break
				}
			}
		}
	}
}

func (d *Driver) readPage(ctx context.Context, names []string, yield func(driver.Entry, error) bool) (wantsMore bool) {
	seen, err := d.readStates(ctx, names)
	if err != nil {
		yield(driver.Entry{}, err)
		return false
	}
	var calls []Call // for the names for which seen has no entry
	for i, name := range names {
		if seen[i] == nil {
			calls = append(calls, d.call(name))
		}
	}
	replies := runAll(ctx, d.conn, Read, calls)
	for i, name := range names {
		var e driver.Entry
		var err error
		if seen[i] != nil {
			e = *seen[i]
		} else {
			e, err = d.entryOf(ctx, name, replies[0])
			replies = replies[1:]
		}
		switch {
		case err != nil && !isDamage(err):
			yield(driver.Entry{}, err)
			return false
		case err != nil:
			e.Name = name
		case len(e.Holders)+len(e.Waiters) == 0 && e.ClosedFor == 0:
			continue // a free name that only has a fence or a value
		}
		if !yield(e, err) {
			return false
		}
	}
	return true
}
