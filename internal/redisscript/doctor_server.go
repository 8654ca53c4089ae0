package redisscript

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// An examinedServer is one server while it is examined.
type examinedServer struct {
	*examination
	Node
	ctx     context.Context
	info    string
	unknown []string // settings that the server hides
}

// server examines one server, and reports whether it answered.
func (x *examination) server(ctx context.Context, s Node) bool {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	p := &examinedServer{examination: x, Node: s, ctx: ctx}
	var err error
	for range 2 { // twice, because a pooled connection may be dead
		if p.info, err = s.ask(ctx, "INFO"); err == nil || refuses(err) {
			break
		}
	}
	switch {
	case refuses(err):
		p.finds(driver.SeverityInfo, "server settings", "INFO is refused, so version, memory, persistence and replication cannot be told: "+err.Error(), "give the user +info and +config|get")
	case err != nil:
		p.finds(driver.SeverityError, "server", "it does not answer: "+err.Error(), "what it keeps can be neither locked nor released until it does")
		return false
	case x.d.client.Cluster && p.field("role") == "slave":
		return true // no more to examine, because only masters grant
	default:
		p.version()
		p.memory()
		p.persistence()
		p.replication()
		p.connections()
		p.cluster()
	}
	p.clock()
	p.rights()
	p.password()
	if len(p.unknown) > 0 {
		p.finds(driver.SeverityInfo, "server settings", "CONFIG GET is refused, as on most managed servers, so it cannot be told what these are: "+strings.Join(p.unknown, ", "),
			"look at them where the server is managed, or give the user +config|get")
	}
	return true
}

func (p *examinedServer) finds(severity driver.Severity, subject, detail, advice string) {
	p.say(p.Name, severity, subject, detail, advice)
}

// field returns the value of a line of INFO, or "" if there is no such line.
func (p *examinedServer) field(name string) string {
	for line := range strings.SplitSeq(p.info, "\n") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return ""
}

func (p *examinedServer) number(name string) int64 {
	n, _ := strconv.ParseInt(p.field(name), 10, 64)
	return n
}

// setting returns the value of a setting, and whether the server has answered.
func (p *examinedServer) setting(name string) (string, bool) {
	answer, err := p.ask(p.ctx, "CONFIG", "GET", name)
	_, value, ok := strings.Cut(answer, "\n")
	if err != nil || !ok {
		p.unknown = append(p.unknown, name)
		return "", false
	}
	return strings.TrimSpace(value), true
}

func (p *examinedServer) version() {
	product, v := "Valkey", p.field("valkey_version") // every version of Valkey is new enough
	if v == "" {
		product, v = "Redis", p.field("redis_version")
	}
	for _, f := range engine.Version(product, v) {
		p.finds(f.Severity, f.Subject, f.Detail, f.Advice)
	}
	var major, minor int
	_, _ = fmt.Sscanf(v, "%d.%d", &major, &minor)
	switch {
	case product == "Valkey":
	case major < 6 || major == 6 && minor < 2:
		p.finds(driver.SeverityError, "version", "it is Redis "+v, "Redis 6.2 or later is needed, or a Valkey of any version")
	case major < 7 && p.d.client.Cluster:
		p.finds(driver.SeverityInfo, "version", "it is Redis "+v+": what tells a waiter that it was granted goes to all nodes", "7.0 has channels that belong to slots")
	}
}

func (p *examinedServer) memory() {
	limit, policy := p.number("maxmemory"), p.field("maxmemory_policy")
	switch {
	case policy != "noeviction" && policy != "" && limit > 0:
		p.finds(driver.SeverityError, "maxmemory-policy", policy+": when memory is full Redis deletes locks that are held, and the fences of others, and grants the locks again",
			"use noeviction, or a server for locks alone")
	case policy != "noeviction" && policy != "":
		p.finds(driver.SeverityInfo, "maxmemory-policy", policy+": as soon as a maxmemory is set, Redis may delete locks that are held", "use noeviction")
	case limit > 0 && p.number("used_memory") > limit/10*9:
		p.finds(driver.SeverityWarning, "maxmemory", "more than nine tenths of it are used: when it is full nothing new is granted (what is held can be renewed and released)",
			"raise maxmemory, or use a server for locks alone")
	}
}

// persistence examines which data a restart loses. After the loss of a lock, the server
// grants it to others while its holder still relies on it. Fences then rise by the clock
// alone.
func (p *examinedServer) persistence() {
	if p.field("loading") == "1" {
		p.finds(driver.SeverityError, "persistence", "the server is still reading its data", "wait until it has")
	}
	if p.field("rdb_last_bgsave_status") == "err" || p.field("aof_last_write_status") == "err" {
		p.finds(driver.SeverityError, "persistence", "the server could not write its data the last time: it refuses to write, or forgets all since", "look at its disk and its log")
	}
	if p.field("aof_enabled") == "1" {
		if f, told := p.setting("appendfsync"); told && f == "no" {
			p.finds(driver.SeverityInfo, "persistence", "appendfsync is no: a crash of the machine loses what the system had not written yet", "appendfsync everysec")
		}
		return
	}
	lost := "after a restart of the server all locks are forgotten"
	if save, told := p.setting("save"); save != "" {
		lost = "after a crash of the server the locks since the last snapshot (save " + save + ") are forgotten"
	} else if !told {
		lost = "after a crash of the server the locks of the last minutes, or all, are forgotten"
	}
	if p.number("connected_slaves") > 0 {
		lost += ", on its replicas, too, if it is back before one of them has taken over"
	}
	p.finds(driver.SeverityWarning, "persistence", "appendonly is off: "+lost+", and others are granted what is still held. Fences go on rising, as long as the clock does not go back",
		"appendonly yes, or let writers check the fence")
}

// password examines whether the password has any effect: if the default user needs no
// password, the server accepts any. It examines nothing if the URL has another user,
// because the operator has then configured users. Such a user may often not ask, and each
// refusal adds a line to the server's ACL LOG.
func (p *examinedServer) password() {
	if !p.d.client.Password {
		return
	}
	if answer, err := p.ask(p.ctx, "ACL", "GETUSER", "default"); err == nil && slices.Contains(strings.Fields(answer), "nopass") {
		p.finds(driver.SeverityWarning, "authentication", "a password is given, and the server takes any for the user \"default\": every client that reaches it can take and release any lock",
			"set one (requirepass, or ACL SETUSER), or leave it out of the URL")
	}
}

// replication examines which grants a fail-over may lose. Replication is asynchronous, so
// no setting makes a fail-over keep all grants.
func (p *examinedServer) replication() {
	if role := p.field("role"); role != "master" {
		p.finds(driver.SeverityError, "role", "the server is a "+role+": it cannot grant anything", "give the master's address, or those of the Sentinels with master_set")
		return
	}
	n := p.number("connected_slaves")
	if want := int64(p.d.WaitReplicas); want > n {
		p.finds(driver.SeverityError, "wait", fmt.Sprintf("%d replicas have to acknowledge each grant, and %d are connected: nothing is granted", want, n), "connect more, or wait for fewer")
	}
	if n == 0 {
		if p.d.client.Cluster {
			p.finds(driver.SeverityInfo, "replicas", "it has none: when it dies, its names cannot be locked until it is back", "give each master a replica")
		}
		return
	}
	for i := range n {
		if at := p.field("slave" + strconv.FormatInt(i, 10)); at != "" && !strings.Contains(at, "state=online") {
			p.finds(driver.SeverityWarning, "replicas", "one is not up to date: "+at, "look at it: a fail-over to it would forget locks")
		}
	}
	good := p.field("min_slaves_good_slaves") // INFO has it only if both settings are above 0
	least, told := p.setting("min-replicas-to-write")
	switch {
	case good == "" || told && least == "0":
		p.finds(driver.SeverityWarning, "min-replicas-to-write", "it is 0: a master that is cut off from its replicas goes on granting locks while the new master grants them, too",
			"set it to 1, and min-replicas-max-lag to a few seconds: so long it can go on then. A fail-over can still lose the last grants, so let writers check the fence")
	case told && good < least && len(good) <= len(least):
		p.finds(driver.SeverityError, "min-replicas-to-write", "it is "+least+", and "+good+" replicas are in touch: nothing can be granted, renewed or released", "look at the replicas")
	default:
		if lag, told := p.setting("min-replicas-max-lag"); told && len(lag) > 1 && lag != "10" {
			p.finds(driver.SeverityInfo, "min-replicas-max-lag", "it is "+lag+" s: so long a master that was cut off goes on granting locks while the new one grants them, too", "10 s or less")
		}
	}
}

// RunID returns the run ID of a single server, or "" if the server does not answer. Each
// start of the server changes it.
func RunID(ctx context.Context, d *Driver) string {
	servers, err := d.conn.nodes(ctx, false)
	if err != nil || len(servers) != 1 {
		return ""
	}
	info, _ := servers[0].ask(ctx, "INFO", "server")
	return (&examinedServer{info: info}).field("run_id")
}

func (p *examinedServer) connections() {
	if limit := p.number("maxclients"); limit > 0 && p.number("connected_clients") > limit/10*9 {
		p.finds(driver.SeverityWarning, "maxclients", "more than nine tenths of the connections that the server allows are in use", "raise maxclients")
	}
}

func (p *examinedServer) cluster() {
	if p.field("cluster_enabled") != "1" {
		return
	}
	if !p.d.client.Cluster {
		p.finds(driver.SeverityError, "cluster", "the server is a node of a cluster, and is used as if it were alone: only names in its slots can be locked",
			"use a cluster client (leave out cluster=false)")
	}
	answer, err := p.ask(p.ctx, "CLUSTER", "INFO")
	if err != nil {
		p.finds(driver.SeverityInfo, "cluster", "CLUSTER INFO is refused, so it cannot be told whether the cluster is whole", "give the user +cluster|info")
		return
	}
	for line := range strings.SplitSeq(strings.TrimPrefix(answer, "txt:"), "\n") {
		// with RESP3 the type may be the first field
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); {
		case key == "cluster_state" && value != "ok":
			p.finds(driver.SeverityError, "cluster", "cluster_state is "+value+": the node answers for no name", "redis-cli --cluster check")
		case key == "cluster_slots_assigned" && value != strconv.Itoa(slots):
			p.finds(driver.SeverityError, "cluster", "only "+value+" of "+strconv.Itoa(slots)+" slots belong to a node: other names cannot be locked", "redis-cli --cluster fix")
		}
	}
}

// clock compares the server's clock with this host's. A wrong clock matters: fences
// follow it, and an operator may later set it back.
func (p *examinedServer) clock() {
	sent := time.Now()
	answer, err := p.ask(p.ctx, "TIME")
	is := readTime(answer)
	if err != nil || is == 0 {
		return
	}
	off, slack := time.UnixMicro(is).Sub(sent), time.Since(sent)
	severity := driver.SeverityInfo
	switch apart := time.Duration(math.Abs(float64(off))); {
	case apart > slack+time.Minute:
		severity = driver.SeverityWarning
	case apart < slack+time.Second:
		return
	}
	p.finds(severity, "clock", fmt.Sprintf("it differs from ours by %v: when it is set right, leases end early or late by as much, and after a fail-over "+
		"to one that is behind, fences rise only for names that it remembers", off.Round(time.Second)), "let NTP keep the clocks")
}
