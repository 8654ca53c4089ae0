package natslock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser. It examines the bucket's configuration, its
// replicas and their state, each entry, and the server's version, limits and clock.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	s := d.store
	if s.life.Err() != nil {
		return nil, driver.ErrClosed
	}
	err := s.ready(ctx)
	if _, unfit := errors.AsType[*configError](err); err != nil && !unfit {
		return nil, err
	}
	sent := time.Now()
	info, unread := retryRead(ctx, s, s.find)
	if unread != nil {
		return nil, unread
	}
	c := checkup{s: s, clustered: s.nc.ConnectedClusterName() != ""}
	c.values(&info.Config)
	c.space(&info.Config, &info.State)
	c.replicas(info.StreamInfo)
	c.disk(&info.Config)
	c.clock(locktable.At(info.TimeStamp), sent, time.Now())
	c.server()
	c.account(ctx)
	if err == nil { // without a bucket there are no entries
		c.found = append(c.found, locktable.Damaged(ctx, d)...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	engine.SortFindings(c.found)
	return c.found, nil
}

type checkup struct {
	s         *store
	clustered bool
	found     engine.Findings
}

// values examines the settings of the bucket that affect values.
func (c *checkup) values(is *jetstream.StreamConfig) {
	edit := c.s.edit()
	c.found = append(c.found, c.s.configErrors(is)...)
	c.found.Add(!is.AllowMsgTTL, driver.SeverityWarning, "message TTL", "the bucket has no TTLs for each message: names that are not used any more stay for ever", edit+"--allow-msg-ttl")
	c.found.Add(!c.s.sendsStamps(is), driver.SeverityInfo, "republish", "the bucket does not tell when it stored something, so an acquire takes a request more",
		fmt.Sprintf("%s--republish-source='%s>' --republish-destination='%s>' --republish-headers", edit, c.s.prefix, c.s.stampPrefix()))
	c.found.Add(is.FirstSeq < 1<<40, driver.SeverityInfo, "first sequence", "the bucket begins to count at 1, as others make it: if it is deleted and made again, a client that does not hear of it may take a value for one that it knows",
		"let natslock make it, or close all clients before it is deleted")
}

// space examines the free space of the bucket.
func (c *checkup) space(is *jetstream.StreamConfig, state *jetstream.StreamState) {
	c.found.Add(isNearlyFull(state.Bytes, is.MaxBytes), driver.SeverityWarning, "max bytes",
		fmt.Sprintf("%d of the %d bytes that the bucket may have are used: when it is full nothing is granted, and nothing renewed", state.Bytes, is.MaxBytes), "raise it: nats stream edit "+c.s.stream+" --max-bytes=-1")
	c.found.Add(isNearlyFull(state.Msgs, is.MaxMsgs), driver.SeverityWarning, "max messages",
		fmt.Sprintf("%d of the %d names that the bucket may have are used", state.Msgs, is.MaxMsgs), "raise it")
	most := c.s.nc.MaxPayload()
	c.found.Add(most > 0 && most < 256<<10, driver.SeverityWarning, "max payload",
		fmt.Sprintf("a message has %d bytes at most: a queue of some hundred does not fit", most), "raise max_payload to 1MB")
	c.found.Add(is.MaxMsgSize > 0 && is.MaxMsgSize < 256<<10, driver.SeverityWarning, "max message size",
		fmt.Sprintf("a value has %d bytes at most: a queue of some hundred does not fit", is.MaxMsgSize), c.s.edit()+"--max-msg-size=-1")
}

func isNearlyFull(used uint64, most int64) bool { return most > 0 && used > uint64(most)/5*4 }

// replicas examines the effect of the loss of a server.
func (c *checkup) replicas(info *jetstream.StreamInfo) {
	n, want, more := info.Config.Replicas, c.s.o.Replicas, c.s.edit()+"--replicas=3"
	c.found.Add(n == 1 && c.clustered, driver.SeverityWarning, "replicas", "the bucket is on one server of the cluster: without it nothing is granted, and without its disk all is forgotten", more)
	c.found.Add(n == 1 && !c.clustered, driver.SeverityInfo, "replicas", "there is one server: without it nothing is granted", "run a cluster of three")
	c.found.Add(n%2 == 0, driver.SeverityWarning, "replicas", fmt.Sprintf("of %d replicas none may be missing that would not stop %d, too", n, n-1), more)
	c.found.Add(want > 0 && want != n, driver.SeverityInfo, "replicas", fmt.Sprintf("%d are asked for, and the bucket has %d: that counts only when it is made", want, n),
		fmt.Sprintf("%s--replicas=%d, or leave it out", c.s.edit(), want))
	if info.Cluster == nil {
		return
	}
	for _, r := range info.Cluster.Replicas {
		c.found.Add(r.Offline, driver.SeverityWarning, "replica "+r.Name, "it is offline", "start it")
		c.found.Add(!r.Offline && !r.Current, driver.SeverityWarning, "replica "+r.Name, fmt.Sprintf("it is %d operations behind", r.Lag), "look at its log and its disk")
	}
}

// disk examines what an acknowledgement guarantees.
func (c *checkup) disk(is *jetstream.StreamConfig) {
	c.found.Add(c.s.o.Memory && is.Storage == jetstream.FileStorage, driver.SeverityInfo, "storage", "memory is asked for, and the bucket is on disk: that counts only when it is made", "leave it out")
	switch {
	case is.Storage == jetstream.MemoryStorage && is.Replicas == 1:
		c.found.Add(true, driver.SeverityError, "storage", "the bucket is in the memory of one server: when that restarts, what is held is granted again", "make it on disk, with three replicas")
	case is.Storage == jetstream.MemoryStorage:
		c.found.Add(true, driver.SeverityWarning, "storage", "the bucket is in memory: when a majority of its servers restart, what is held is granted again", "make it on disk")
	case is.PersistMode == jetstream.AsyncPersistMode:
		c.found.Add(true, driver.SeverityError, "persist mode", "the server acknowledges before it writes: when its process is killed, what is held is granted again", c.s.edit()+"--persist-mode=default")
	case is.Replicas == 1:
		c.found.Add(true, driver.SeverityInfo, "sync interval", "a server syncs its disk every two minutes unless sync_interval says more, which cannot be seen from here: what it acknowledged before the machine (not the process) fails can be granted again",
			"jetstream { sync_interval: always }, or three replicas whose machines do not fail together")
	default:
		c.found.Add(true, driver.SeverityInfo, "sync interval", "servers sync their disks every two minutes unless sync_interval says more, which cannot be seen from here: what they acknowledged before a majority of the machines fail together can be granted again",
			"jetstream { sync_interval: always }, or machines that do not share power")
	}
}

// clock compares the leader's clock with this machine's. It cannot say which is wrong.
func (c *checkup) clock(is locktable.Instant, sent, now time.Time) {
	off := locktable.At(now).Until(is)
	if before := locktable.At(sent).Until(is); before < 0 {
		off = before
	} else if off < 0 {
		return // the leader's time is between sent and now
	}
	off = off.Round(time.Millisecond)
	c.found.Add(off.Abs() > driver.MaxLead, driver.SeverityWarning, "clock", fmt.Sprintf("that of the leader and that of this machine differ by %v", off.Abs()),
		"keep the servers' clocks with NTP: where they differ, a change of the leader ends leases early, or late")
}

func (c *checkup) server() {
	c.found = append(c.found, engine.Version("nats-server", c.s.nc.ConnectedServerVersion())...)
	o := &c.s.nc.Opts
	c.found.Add((o.User != "" || o.Token != "" || o.Nkey != "" || o.UserJWT != nil) && !c.s.nc.AuthRequired(), driver.SeverityWarning, "authentication",
		"a user, a token or credentials are given, and the server does not ask for them: every client that reaches it can take and release any lock",
		"give the server users (authorization { ... }, or accounts), or leave them out of the URL")
	c.found.Add(!c.s.push.works(), driver.SeverityInfo, "push", "no signals arrive: waiters ask now and then", "let the user publish to the inboxes of the others ("+inboxes(c.s.push.inbox)+"), or say push=true")
}

func inboxes(inbox string) string { first, _, _ := strings.Cut(inbox, "."); return first + ".>" }

// account examines the limits of the account, if the user may see them.
func (c *checkup) account(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a, err := c.s.ask(within, c.s.api("INFO"), "")
	if err != nil || a.AccountInfo == nil {
		return
	}
	full := func(what string, used uint64, most int64) {
		c.found.Add(isNearlyFull(used, most), driver.SeverityWarning, "account", fmt.Sprintf("%d of %d bytes of %s are used, by all its streams: when they are full nothing is granted", used, most, what), "raise the limit, or delete streams")
	}
	full("disk", a.Store, a.Limits.MaxStore)
	full("memory", a.Memory, a.Limits.MaxMemory)
}
