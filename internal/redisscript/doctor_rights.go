package redisscript

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

var rightsScript = script("rights")

// checkRights tries each command that the scripts call. It does not use ACL DRYRUN, which
// requires an administrator and Redis 7.0.
func (p *examinedServer) checkRights() {
	key, inbox, shard := stateKey(p.d.Prefix, doctorsName)+"x", "", ""
	if !p.d.NoPush {
		inbox = p.d.Prefix + "inbox:doctor"
	}
	if !p.d.NoPush && p.d.client.Cluster {
		shard = p.d.Prefix + "{" + slotTags()[slot(doctorsName)] + "}inbox:doctor"
	}
	answer, err := p.ask(p.ctx, "EVAL", rightsScript.Source, "0", key, inbox, shard)
	var missing, unknown []string
	for command := range strings.FieldsSeq(answer) {
		name, isUnknown := strings.CutPrefix(command, "?")
		publishes := strings.HasSuffix(name, "PUBLISH")
		if publishes {
			p.cannotPublish = append(p.cannotPublish, p.Name)
		}
		switch {
		case name == "MGET":
			p.add(driver.SeverityInfo, "rights", "MGET is refused, so a list runs a script for each name", "give the user +mget")
		case isUnknown:
			unknown = append(unknown, name)
		case !publishes:
			missing = append(missing, strings.ToLower(name))
		}
	}
	if len(unknown) > 0 {
		p.add(driver.SeverityError, "commands", "the server lacks, or has renamed (rename-command), commands of the scripts: "+strings.Join(unknown, " "),
			"use Redis 6.2 or later, or Valkey, without renamed commands")
	}
	switch {
	case err != nil && p.ctx.Err() == nil:
		p.add(driver.SeverityError, "rights", "a script cannot be run: "+err.Error(), "https://github.com/pawl-go/pawl/blob/main/docs/backends/redis.md has the ACL that is needed")
	case len(missing) > 0:
		p.add(driver.SeverityError, "rights", "the user may not run commands of the scripts, or not on Pawl's keys: "+strings.Join(missing, " "),
			"give it ~"+p.d.Prefix+"* and +"+strings.Join(missing, " +"))
	}
	if p.d.WaitReplicas > 0 {
		if _, err := p.ask(p.ctx, "WAIT", "0", "1"); isServerError(err) {
			p.add(driver.SeverityError, "rights", "WAIT is refused, so no lease is granted: "+err.Error(), "give the user +wait")
		}
	}
	if _, err := p.ask(p.ctx, "SCAN", "0", "COUNT", "1"); isServerError(err) {
		p.add(driver.SeverityInfo, "rights", "locks cannot be listed: "+err.Error(), "give the user +scan (in a cluster also +role)")
	}
}

// checkPush examines whether the server can wake waiters.
func (x *examination) checkPush(ctx context.Context) {
	if x.d.NoPush {
		x.addFinding("", driver.SeverityInfo, "push", "push is turned off, so waiters poll", "leave out push=false, or NoPush")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	rights := "give the user &" + x.d.Prefix + "* +subscribe +unsubscribe +publish (in a cluster also +ssubscribe +sunsubscribe +spublish)"
	_, shard, err := x.d.signals.channelsFor(ctx, &driver.Claim{Name: doctorsName, Queue: true, QueueTTL: time.Second})
	switch {
	case err != nil || !x.d.signals.works():
		x.addFinding("", driver.SeverityWarning, "push", "the driver cannot subscribe to a channel, so waiters poll, which is slower and more load", rights)
	case len(x.cannotPublish) > 0:
		for _, server := range x.cannotPublish {
			x.addFinding(server, driver.SeverityWarning, "push", "its scripts cannot publish, so waiters get no signal of a release, and poll", rights)
		}
	case x.d.client.Cluster && shard == "":
		x.addFinding("", driver.SeverityInfo, "push", "the driver cannot subscribe to a sharded channel, so each signal of a grant goes to all nodes", "Redis 7.0, or "+rights)
	}
}

// checkTracking examines whether the server notifies a holder whose name is deleted,
// flushed or evicted.
func (x *examination) checkTracking(ctx context.Context) {
	const noReports = "the server does not report deleted or evicted keys, so a holder learns of that only with its next renewal: "
	if x.d.tracking == nil {
		x.addFinding("", driver.SeverityInfo, "tracking", noReports+x.d.client.UntrackedReason, "if that is too late, use redislock over RESP3, without tracking=false, and "+
			"give the user +client|tracking +client|caching (in a cluster also +multi +exec)")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if p := x.d.tracking.watch(ctx, []string{stateKey(x.d.Prefix, doctorsName)})[0]; p.Err != nil {
		x.addFinding("", driver.SeverityInfo, "tracking", noReports+p.Err.Error(), "give the user +client|tracking +client|caching (in a cluster also +multi +exec)")
	}
}
