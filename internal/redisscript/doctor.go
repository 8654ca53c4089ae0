package redisscript

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Diagnose implements driver.Doctor. What the user has no right to ask is said, and not an error; a server that does
// not answer at all is one.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	e := examination{ctx: ctx, d: d}
	sent := time.Now()
	if _, err := d.Entry(ctx, "pawl doctor"); err != nil {
		return nil, err
	}
	e.info = e.ask("server settings", "INFO")
	if e.info != "" {
		e.version()
		e.persistence()
		e.replication()
		e.clock(sent)
	}
	e.memory()
	e.push()
	rank := map[string]int{"error": 0, "warning": 1, "info": 2}
	slices.SortStableFunc(e.found, func(a, b driver.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	return e.found, nil
}

type examination struct {
	ctx   context.Context
	d     *Driver
	info  string
	found []driver.Finding
}

func (e *examination) say(severity, subject, detail, advice string) {
	e.found = append(e.found, driver.Finding{Severity: severity, Subject: subject, Detail: detail, Advice: advice})
}

// ask sends a command; if it is refused, that is a finding.
func (e *examination) ask(subject string, command ...string) string {
	answer, err := e.d.sender.Do(e.ctx, command...)
	if err != nil {
		e.say("info", subject, fmt.Sprintf("%s cannot be asked: %v", strings.Join(command, " "), err), "give the user +info and +config|get to have this examined")
	}
	return answer
}

// field is a line of INFO.
func (e *examination) field(name string) string {
	for line := range strings.SplitSeq(e.info, "\n") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return ""
}

func (e *examination) version() {
	v := e.field("redis_version")
	major, rest, _ := strings.Cut(v, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, _ := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	if m < 6 || m == 6 && n < 2 {
		e.say("error", "version", "it is Redis "+v, "Redis 6.2 or later is needed, or a Valkey of any version")
	}
}

func (e *examination) memory() {
	limit := e.setting("maxmemory")
	policy := e.setting("maxmemory-policy")
	if limit == "" || limit == "0" || policy == "noeviction" {
		return
	}
	e.say("error", "maxmemory-policy", policy+": when memory is full Redis deletes locks that are held, and grants them again",
		"use noeviction, or a server for locks alone")
}

func (e *examination) setting(name string) string {
	if e.info == "" {
		return "" // one finding about missing rights is enough
	}
	lines := strings.Split(strings.TrimSpace(e.ask(name, "CONFIG", "GET", name)), "\n")
	if len(lines) < 2 {
		return ""
	}
	return strings.TrimSpace(lines[1])
}

func (e *examination) persistence() {
	if e.field("aof_enabled") == "1" {
		if f := e.setting("appendfsync"); f == "no" {
			e.say("info", "persistence", "appendfsync is no: a crash of the machine loses what the system had not written yet", "appendfsync everysec")
		}
		return
	}
	if e.field("master_replid") != "" && e.field("connected_slaves") != "0" && e.field("connected_slaves") != "" {
		return // the replicas have it
	}
	e.say("warning", "persistence", "appendonly is off: after a restart of the server the locks of the last minutes, or all, are forgotten, and "+
		"others are granted what is still held (with a greater fence)", "appendonly yes, or let writers check the fence")
}

func (e *examination) replication() {
	if e.field("role") != "master" {
		e.say("error", "role", "the server is a "+e.field("role")+": it cannot grant anything", "give the master's address, or those of the Sentinels with master_set")
		return
	}
	n := e.field("connected_slaves")
	if n == "0" || n == "" {
		return
	}
	if least := e.setting("min-replicas-to-write"); least == "0" {
		e.say("warning", "min-replicas-to-write", "it is 0: a master that is cut off from its "+n+" replica(s) goes on granting locks while the new master grants them, too",
			"set it to 1, with min-replicas-max-lag 10; a fail-over can still lose the last grants, so let writers check the fence")
	}
}

// clock compares the server's with ours: fences follow the server's, and it may be set back when somebody notices.
func (e *examination) clock(sent time.Time) {
	us, err := strconv.ParseInt(e.field("server_time_usec"), 10, 64)
	if err != nil {
		return
	}
	if off := time.UnixMicro(us).Sub(sent); off.Abs() > time.Since(sent)+time.Minute {
		e.say("warning", "clock", fmt.Sprintf("it differs from ours by %v: when it is set right, leases end early or late by as much", off.Round(time.Second)),
			"let NTP keep the clocks")
	}
}

func (e *examination) push() {
	switch {
	case !e.d.Push:
		e.say("info", "push", "it was turned off: waiters ask now and then", "leave out push=false, or NoPush")
	case !e.d.inbox.try(e.ctx):
		e.say("warning", "push", "no channel can be subscribed to: waiters ask now and then, which is slower and more load",
			"give the user &"+e.d.Prefix+"* +subscribe +unsubscribe +publish (in a cluster +ssubscribe +sunsubscribe +spublish, too)")
	}
	if e.d.watch == nil {
		e.say("info", "tracking", "the server does not tell of keys that somebody deletes or evicts: a holder hears of that by its next renewal",
			"in a cluster, with RESP2 and with a client of your own this is so; else give the user +client|tracking +client|caching +exists")
	}
}
