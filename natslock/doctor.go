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
	if _, unfit := errors.AsType[*engine.ConfigError](err); err != nil && !unfit {
		return nil, err
	}
	sent := time.Now()
	info, findErr := retryRead(ctx, s, s.find)
	if findErr != nil {
		return nil, findErr
	}
	c := checkup{s: s, clustered: s.nc.ConnectedClusterName() != ""}
	c.checkValues(&info.Config)
	c.checkSpace(&info.Config, &info.State)
	c.checkReplicas(info.StreamInfo)
	c.checkDisk(&info.Config)
	c.checkClock(locktable.At(info.TimeStamp), sent, time.Now())
	c.checkServer()
	c.checkAccount(ctx)
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

// checkValues examines the settings of the bucket that affect values.
func (c *checkup) checkValues(config *jetstream.StreamConfig) {
	edit := c.s.editCommand()
	c.found = append(c.found, c.s.configErrors(config)...)
	c.found.Add(!config.AllowMsgTTL, driver.SeverityWarning, "message TTL", "the bucket does not allow a TTL for each message: unused names stay for ever", edit+"--allow-msg-ttl")
	c.found.Add(!c.s.sendsStamps(config), driver.SeverityInfo, "republish", "the bucket does not send the times of its messages, so an acquire takes one request more",
		fmt.Sprintf("%s--republish-source='%s>' --republish-destination='%s>' --republish-headers", edit, c.s.prefix, c.s.stampPrefix()))
	c.found.Add(config.FirstSeq < 1<<40, driver.SeverityInfo, "first sequence", "the bucket's sequences begin at 1, because another tool created it: if it is deleted and created again, a client that does not notice may take a new value for one that it knows",
		"let natslock create it, or close all clients before you delete it")
}

// checkSpace examines the free space of the bucket.
func (c *checkup) checkSpace(config *jetstream.StreamConfig, state *jetstream.StreamState) {
	c.found.Add(isNearlyFull(state.Bytes, config.MaxBytes), driver.SeverityWarning, "max bytes",
		fmt.Sprintf("the bucket uses %d of at most %d bytes: when it is full, no lease is granted or renewed", state.Bytes, config.MaxBytes), "raise it: nats stream edit "+c.s.stream+" --max-bytes=-1")
	c.found.Add(isNearlyFull(state.Msgs, config.MaxMsgs), driver.SeverityWarning, "max messages",
		fmt.Sprintf("the bucket has %d of at most %d names", state.Msgs, config.MaxMsgs), "raise it")
	limit := c.s.nc.MaxPayload()
	c.found.Add(limit > 0 && limit < 256<<10, driver.SeverityWarning, "max payload",
		fmt.Sprintf("a message has %d bytes at most: a queue of some hundred waiters does not fit", limit), "raise max_payload to 1MB")
	c.found.Add(config.MaxMsgSize > 0 && config.MaxMsgSize < 256<<10, driver.SeverityWarning, "max message size",
		fmt.Sprintf("a value has %d bytes at most: a queue of some hundred waiters does not fit", config.MaxMsgSize), c.s.editCommand()+"--max-msg-size=-1")
}

func isNearlyFull(used uint64, limit int64) bool { return limit > 0 && used > uint64(limit)/5*4 }

// checkReplicas examines the effect of the loss of a server.
func (c *checkup) checkReplicas(info *jetstream.StreamInfo) {
	n, want, addReplicas := info.Config.Replicas, c.s.options.Replicas, c.s.editCommand()+"--replicas=3"
	c.found.Add(n == 1 && c.clustered, driver.SeverityWarning, "replicas", "the bucket is on one server of the cluster: while it is down, no lease is granted, and without its disk all locks are lost", addReplicas)
	c.found.Add(n == 1 && !c.clustered, driver.SeverityInfo, "replicas", "there is only one server: while it is down, no lease is granted", "run a cluster of three")
	c.found.Add(n%2 == 0, driver.SeverityWarning, "replicas", fmt.Sprintf("%d replicas survive the loss of no more servers than %d do", n, n-1), addReplicas)
	c.found.Add(want > 0 && want != n, driver.SeverityInfo, "replicas", fmt.Sprintf("the options say %d, and the bucket has %d: the option counts only when the bucket is created", want, n),
		fmt.Sprintf("%s--replicas=%d, or leave it out", c.s.editCommand(), want))
	if info.Cluster == nil {
		return
	}
	for _, r := range info.Cluster.Replicas {
		c.found.Add(r.Offline, driver.SeverityWarning, "replica "+r.Name, "it is offline", "start it")
		c.found.Add(!r.Offline && !r.Current, driver.SeverityWarning, "replica "+r.Name, fmt.Sprintf("it is %d operations behind", r.Lag), "look at its log and its disk")
	}
}

// checkDisk examines what an acknowledgement guarantees.
func (c *checkup) checkDisk(config *jetstream.StreamConfig) {
	c.found.Add(c.s.options.Memory && config.Storage == jetstream.FileStorage, driver.SeverityInfo, "storage", "the options say memory, and the bucket is on disk: the option counts only when the bucket is created", "leave it out")
	switch {
	case config.Storage == jetstream.MemoryStorage && config.Replicas == 1:
		c.found.Add(true, driver.SeverityError, "storage", "the bucket is in the memory of one server: when that restarts, held names are granted again", "create it on disk, with three replicas")
	case config.Storage == jetstream.MemoryStorage:
		c.found.Add(true, driver.SeverityWarning, "storage", "the bucket is in memory: when a majority of its servers restart, held names are granted again", "create it on disk")
	case config.PersistMode == jetstream.AsyncPersistMode:
		c.found.Add(true, driver.SeverityError, "persist mode", "the server acknowledges before it writes: when its process is killed, held names are granted again", c.s.editCommand()+"--persist-mode=default")
	case config.Replicas == 1:
		c.found.Add(true, driver.SeverityInfo, "sync interval", "a server syncs its disk every two minutes, unless sync_interval is set, which clients cannot see: if the machine (not only the process) fails, names that were granted since the last sync can be granted again",
			"jetstream { sync_interval: always }, or three replicas whose machines do not fail together")
	default:
		c.found.Add(true, driver.SeverityInfo, "sync interval", "servers sync their disks every two minutes, unless sync_interval is set, which clients cannot see: if a majority of the machines fail together, names that were granted since the last sync can be granted again",
			"jetstream { sync_interval: always }, or machines that do not share power")
	}
}

// checkClock compares the leader's clock with this machine's. Either may be wrong.
func (c *checkup) checkClock(leader locktable.Instant, sent, now time.Time) {
	difference := locktable.At(now).Until(leader)
	if before := locktable.At(sent).Until(leader); before < 0 {
		difference = before
	} else if difference < 0 {
		return // the leader's time is between sent and now
	}
	difference = difference.Round(time.Millisecond)
	c.found.Add(difference.Abs() > driver.MaxLead, driver.SeverityWarning, "clock", fmt.Sprintf("the leader's clock and this machine's clock differ by %v", difference.Abs()),
		"keep the servers' clocks right with NTP: if they differ, a change of the leader ends leases early or late")
}

func (c *checkup) checkServer() {
	c.found = append(c.found, engine.Version("nats-server", c.s.nc.ConnectedServerVersion())...)
	o := &c.s.nc.Opts
	c.found.Add((o.User != "" || o.Token != "" || o.Nkey != "" || o.UserJWT != nil) && !c.s.nc.AuthRequired(), driver.SeverityWarning, "authentication",
		"a user, a token or credentials are given, but the server does not require them: every client that reaches it can take and release any lock",
		"give the server users (authorization { ... }, or accounts), or leave them out of the URL")
	c.found.Add(!c.s.push.works(), driver.SeverityInfo, "push", "no signals arrive, so waiters poll", "let the user publish to the inboxes of other clients ("+inboxPattern(c.s.push.inbox)+"), and leave out push=false")
}

func inboxPattern(inbox string) string { first, _, _ := strings.Cut(inbox, "."); return first + ".>" }

// checkAccount examines the limits of the account, if the user may see them.
func (c *checkup) checkAccount(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a, err := c.s.ask(within, c.s.apiSubject("INFO"), "")
	if err != nil || a.AccountInfo == nil {
		return
	}
	addUsage := func(what string, used uint64, limit int64) {
		c.found.Add(isNearlyFull(used, limit), driver.SeverityWarning, "account", fmt.Sprintf("the account's streams use %d of %d bytes of %s: when none are left, no lease is granted", used, limit, what), "raise the limit, or delete streams")
	}
	addUsage("disk", a.Store, a.Limits.MaxStore)
	addUsage("memory", a.Memory, a.Limits.MaxMemory)
}
