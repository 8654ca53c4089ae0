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
	if s.closed.Load() {
		return nil, driver.ErrClosed
	}
	err := s.ready(ctx)
	if _, unfit := errors.AsType[*defect](err); err != nil && !unfit {
		return nil, during("diagnose", err)
	}
	sent := time.Now()
	info, unread := s.info(ctx)
	if unread != nil {
		return nil, during("diagnose", unread)
	}
	c := checkup{s: s, clustered: s.nc.ConnectedClusterName() != ""}
	c.values(&info.Config)
	c.room(&info.Config, &info.State)
	c.replicas(info)
	c.disk(&info.Config)
	c.clock(locktable.At(info.TimeStamp), sent, time.Now())
	c.server()
	c.account(ctx)
	if err == nil { // otherwise no entry can be read
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
	found     []driver.Finding
}

func (c *checkup) find(severity driver.Severity, subject, detail, advice string) {
	c.found = append(c.found, engine.Found(severity, subject, detail, advice)...)
}

// values examines how the bucket treats values.
func (c *checkup) values(is *jetstream.StreamConfig) {
	edit := c.s.edit()
	for _, d := range c.s.defects(is) {
		c.find(driver.SeverityError, d.subject, d.detail, d.advice)
	}
	if !is.AllowMsgTTL {
		c.find(driver.SeverityWarning, "message TTL", "the bucket has no TTLs for each message: names that are not used any more stay for ever", edit+"--allow-msg-ttl")
	}
	if is.RePublish == nil || is.RePublish.Destination != c.s.stampPrefix()+">" {
		c.find(driver.SeverityInfo, "republish", "the bucket does not tell when it stored something, so an acquire takes a request more",
			fmt.Sprintf("%s--republish-source='%s>' --republish-destination='%s>' --republish-headers", edit, c.s.prefix, c.s.stampPrefix()))
	}
	if is.FirstSeq < 1<<40 {
		c.find(driver.SeverityInfo, "first sequence", "the bucket begins to count at 1, as others make it: if it is deleted and made again, a client that does not hear of it may take a value for one that it knows",
			"let natslock make it, or close all clients before it is deleted")
	}
}

// room examines how much more the bucket can store.
func (c *checkup) room(is *jetstream.StreamConfig, state *jetstream.StreamState) {
	if is.MaxBytes > 0 && state.Bytes > uint64(is.MaxBytes)/5*4 {
		c.find(driver.SeverityWarning, "max bytes", fmt.Sprintf("%d of the %d bytes that the bucket may have are used: when it is full nothing is granted, and nothing renewed", state.Bytes, is.MaxBytes), "raise it: nats stream edit "+c.s.stream+" --max-bytes=-1")
	}
	if is.MaxMsgs > 0 && state.Msgs > uint64(is.MaxMsgs)/5*4 {
		c.find(driver.SeverityWarning, "max messages", fmt.Sprintf("%d of the %d names that the bucket may have are used", state.Msgs, is.MaxMsgs), "raise it")
	}
	if most := c.s.nc.MaxPayload(); most > 0 && most < 256<<10 {
		c.find(driver.SeverityWarning, "max payload", fmt.Sprintf("a message has %d bytes at most: a queue of some hundred does not fit", most), "raise max_payload to 1MB")
	}
	if is.MaxMsgSize > 0 && is.MaxMsgSize < 256<<10 {
		c.find(driver.SeverityWarning, "max message size", fmt.Sprintf("a value has %d bytes at most: a queue of some hundred does not fit", is.MaxMsgSize), c.s.edit()+"--max-msg-size=-1")
	}
}

// replicas examines the effect that the loss of a server has.
func (c *checkup) replicas(info *jetstream.StreamInfo) {
	more := c.s.edit() + "--replicas=3"
	switch n := info.Config.Replicas; {
	case n == 1 && c.clustered:
		c.find(driver.SeverityWarning, "replicas", "the bucket is on one server of the cluster: without it nothing is granted, and without its disk all is forgotten", more)
	case n == 1:
		c.find(driver.SeverityInfo, "replicas", "there is one server: without it nothing is granted", "run a cluster of three")
	case n%2 == 0:
		c.find(driver.SeverityWarning, "replicas", fmt.Sprintf("of %d replicas none may be missing that would not stop %d, too", n, n-1), more)
	}
	if want := c.s.o.Replicas; want > 0 && want != info.Config.Replicas {
		c.find(driver.SeverityInfo, "replicas", fmt.Sprintf("%d are asked for, and the bucket has %d: that counts only when it is made", want, info.Config.Replicas),
			fmt.Sprintf("%s--replicas=%d, or leave it out", c.s.edit(), want))
	}
	if info.Cluster == nil {
		return
	}
	for _, r := range info.Cluster.Replicas {
		switch {
		case r.Offline:
			c.find(driver.SeverityWarning, "replica "+r.Name, "it is offline", "start it")
		case !r.Current:
			c.find(driver.SeverityWarning, "replica "+r.Name, fmt.Sprintf("it is %d operations behind", r.Lag), "look at its log and its disk")
		}
	}
}

// disk examines what an acknowledgement guarantees.
func (c *checkup) disk(is *jetstream.StreamConfig) {
	if c.s.o.Memory && is.Storage == jetstream.FileStorage {
		c.find(driver.SeverityInfo, "storage", "memory is asked for, and the bucket is on disk: that counts only when it is made", "leave it out")
	}
	switch {
	case is.Storage == jetstream.MemoryStorage && is.Replicas == 1:
		c.find(driver.SeverityError, "storage", "the bucket is in the memory of one server: when that restarts, what is held is granted again", "make it on disk, with three replicas")
	case is.Storage == jetstream.MemoryStorage:
		c.find(driver.SeverityWarning, "storage", "the bucket is in memory: when a majority of its servers restart, what is held is granted again", "make it on disk")
	case is.PersistMode == jetstream.AsyncPersistMode:
		c.find(driver.SeverityError, "persist mode", "the server acknowledges before it writes: when its process is killed, what is held is granted again", c.s.edit()+"--persist-mode=default")
	case is.Replicas == 1:
		c.find(driver.SeverityInfo, "sync interval", "a server syncs its disk every two minutes unless sync_interval says more, which cannot be seen from here: what it acknowledged before the machine (not the process) fails can be granted again",
			"jetstream { sync_interval: always }, or three replicas whose machines do not fail together")
	default:
		c.find(driver.SeverityInfo, "sync interval", "servers sync their disks every two minutes unless sync_interval says more, which cannot be seen from here: what they acknowledged before a majority of the machines fail together can be granted again",
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
	if off = off.Round(time.Millisecond); off.Abs() <= driver.MaxLead {
		return
	}
	c.find(driver.SeverityWarning, "clock", fmt.Sprintf("that of the leader and that of this machine differ by %v", off.Abs()),
		"keep the servers' clocks with NTP: where they differ, a change of the leader ends leases early, or late")
}

func (c *checkup) server() {
	c.found = append(c.found, engine.Version("nats-server", c.s.nc.ConnectedServerVersion())...)
	if o := &c.s.nc.Opts; (o.User != "" || o.Token != "" || o.Nkey != "" || o.UserJWT != nil) && !c.s.nc.AuthRequired() {
		c.find(driver.SeverityWarning, "authentication", "a user, a token or credentials are given, and the server does not ask for them: every client that reaches it can take and release any lock",
			"give the server users (authorization { ... }, or accounts), or leave them out of the URL")
	}
	if !c.s.push.works() {
		c.find(driver.SeverityInfo, "push", "no signals arrive: waiters ask now and then", "let the user publish to the inboxes of the others ("+inboxes(c.s.push.inbox)+"), or say push=true")
	}
}

func inboxes(inbox string) string { first, _, _ := strings.Cut(inbox, "."); return first + ".>" }

// account examines the limits of the account, if the user may see them.
func (c *checkup) account(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a, err := c.s.js.AccountInfo(within)
	if err != nil {
		return
	}
	for _, l := range []struct {
		what string
		used uint64
		most int64
	}{{"disk", a.Store, a.Limits.MaxStore}, {"memory", a.Memory, a.Limits.MaxMemory}} {
		if l.most > 0 && l.used > uint64(l.most)/5*4 {
			c.find(driver.SeverityWarning, "account", fmt.Sprintf("%d of %d bytes of %s are used, by all its streams: when they are full nothing is granted", l.used, l.most, l.what), "raise the limit, or delete streams")
		}
	}
}
