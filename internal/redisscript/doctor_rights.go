package redisscript

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
)

var rightsScript = script("rights")

// rights tries each command that the scripts call. It does not use ACL DRYRUN, which
// requires an administrator and Redis 7.0.
func (p *examinedServer) rights() {
	key, inbox, shard := key(p.d.Prefix, doctorsName)+"x", "", ""
	if !p.d.NoPush {
		inbox = p.d.Prefix + "inbox:doctor"
	}
	if !p.d.NoPush && p.d.client.Cluster {
		shard = p.d.Prefix + "{" + tags()[slot(doctorsName)] + "}inbox:doctor"
	}
	answer, err := p.ask(p.ctx, "EVAL", rightsScript.Source, "0", key, inbox, shard)
	var missing, unknown []string
	for command := range strings.FieldsSeq(answer) {
		name, lacks := strings.CutPrefix(command, "?")
		publishes := strings.HasSuffix(name, "PUBLISH")
		if publishes {
			p.cannotPublish = append(p.cannotPublish, p.Name)
		}
		switch {
		case name == "MGET":
			p.finds(driver.SeverityInfo, "rights", "a list asks for each name by a script of its own: MGET is refused", "give the user +mget")
		case lacks:
			unknown = append(unknown, name)
		case !publishes:
			missing = append(missing, strings.ToLower(name))
		}
	}
	if len(unknown) > 0 {
		p.finds(driver.SeverityError, "commands", "the server lacks what the scripts call, or calls it otherwise (rename-command): "+strings.Join(unknown, " "),
			"Redis 6.2 or later, or a Valkey, with the names of their commands")
	}
	switch {
	case err != nil:
		p.finds(driver.SeverityError, "rights", "a script cannot be run: "+err.Error(), "https://github.com/pawl-go/pawl/blob/main/docs/backends/redis.md has the ACL that is needed")
	case len(missing) > 0:
		p.finds(driver.SeverityError, "rights", "the user may not run what the scripts call, or not on our keys: "+strings.Join(missing, " "),
			"give it ~"+p.d.Prefix+"* and +"+strings.Join(missing, " +"))
	}
	if p.d.WaitReplicas > 0 {
		if _, err := p.ask(p.ctx, "WAIT", "0", "1"); refuses(err) {
			p.finds(driver.SeverityError, "rights", "replicas cannot be waited for, so nothing is granted: "+err.Error(), "give the user +wait")
		}
	}
	if _, err := p.ask(p.ctx, "SCAN", "0", "COUNT", "1"); refuses(err) {
		p.finds(driver.SeverityInfo, "rights", "locks cannot be listed: "+err.Error(), "give the user +scan (in a cluster +role, too)")
	}
}

// push examines whether the server can wake waiters.
func (x *examination) push(ctx context.Context) {
	if x.d.NoPush {
		x.say("", driver.SeverityInfo, "push", "it was turned off: waiters ask now and then", "leave out push=false, or NoPush")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	rights := "give the user &" + x.d.Prefix + "* +subscribe +unsubscribe +publish (in a cluster +ssubscribe +sunsubscribe +spublish, too)"
	_, shard, err := x.d.signals.channelsFor(ctx, &driver.Claim{Name: doctorsName, Queue: true, QueueTTL: time.Second})
	switch {
	case err != nil || !x.d.signals.works():
		x.say("", driver.SeverityWarning, "push", "no channel can be subscribed to: waiters ask now and then, which is slower and more load", rights)
	case len(x.cannotPublish) > 0:
		for _, at := range x.cannotPublish {
			x.say(at, driver.SeverityWarning, "push", "it cannot publish: those who wait for what it releases are not told, and ask now and then", rights)
		}
	case x.d.client.Cluster && shard == "":
		x.say("", driver.SeverityInfo, "push", "no channel that belongs to a slot can be subscribed to: what tells a waiter that it was granted goes to all nodes", "Redis 7.0, or "+rights)
	}
}

// tracking examines whether the server notifies a holder whose name is deleted, flushed
// or evicted.
func (x *examination) tracking(ctx context.Context) {
	const else_ = "the server does not report deleted or evicted keys, so a holder learns of it at its next renewal: "
	if x.d.tracking == nil {
		x.say("", driver.SeverityInfo, "tracking", else_+x.d.client.Untracked, "where that is too late, use redislock over RESP3, without tracking=false, and "+
			"give the user +client|tracking +client|caching (in a cluster +multi +exec, too)")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if p := x.d.tracking.watch(ctx, []string{key(x.d.Prefix, doctorsName)})[0]; p.Err != nil {
		x.say("", driver.SeverityInfo, "tracking", else_+p.Err.Error(), "give the user +client|tracking +client|caching (in a cluster +multi +exec, too)")
	}
}
