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

// checkServer examines one server, and reports whether it answered.
func (x *examination) checkServer(ctx context.Context, s Node) bool {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	p := &examinedServer{examination: x, Node: s, ctx: ctx}
	var err error
	for range 2 { // twice, because a pooled connection may be dead
		if p.info, err = s.ask(ctx, "INFO"); err == nil || isServerError(err) {
			break
		}
	}
	switch {
	case isServerError(err):
		p.add(driver.SeverityInfo, "server settings", "INFO is refused, so version, memory, persistence and replication are unknown: "+err.Error(), "give the user +info and +config|get")
	case err != nil:
		p.add(driver.SeverityError, "server", "it does not answer: "+err.Error(), "its names can be neither locked nor released until it answers")
		return false
	case x.d.client.Cluster && p.field("role") == "slave":
		return true // only masters grant leases
	default:
		p.checkVersion()
		p.checkMemory()
		p.checkPersistence()
		p.checkReplication()
		p.checkConnections()
		p.checkCluster()
	}
	p.checkClock()
	p.checkRights()
	p.checkPassword()
	if ctx.Err() != nil { // the answers that came too late must not look like refusals
		p.add(driver.SeverityError, "server", "it does not answer in time: "+ctx.Err().Error(), "find out what keeps it busy, such as SLOWLOG or another process")
	} else if len(p.unknown) > 0 {
		p.add(driver.SeverityInfo, "server settings", "CONFIG GET is refused, as on most managed servers, so these are unknown: "+strings.Join(p.unknown, ", "),
			"look them up at the provider, or give the user +config|get")
	}
	return true
}

func (p *examinedServer) add(severity driver.Severity, subject, detail, advice string) {
	p.addFinding(p.Name, severity, subject, detail, advice)
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

// setting returns the value of a setting, and reports whether the server has answered.
func (p *examinedServer) setting(name string) (string, bool) {
	answer, err := p.ask(p.ctx, "CONFIG", "GET", name)
	_, value, ok := strings.Cut(answer, "\n")
	if err != nil || !ok {
		p.unknown = append(p.unknown, name)
		return "", false
	}
	return strings.TrimSpace(value), true
}

func (p *examinedServer) checkVersion() {
	product, v := "Valkey", p.field("valkey_version") // every version of Valkey is new enough
	if v == "" {
		product, v = "Redis", p.field("redis_version")
	}
	for _, f := range engine.Version(product, v) {
		p.add(f.Severity, f.Subject, f.Detail, f.Advice)
	}
	var major, minor int
	_, _ = fmt.Sscanf(v, "%d.%d", &major, &minor)
	switch {
	case product == "Valkey":
	case major < 6 || major == 6 && minor < 2:
		p.add(driver.SeverityError, "version", "it is Redis "+v, "use Redis 6.2 or later, or Valkey")
	case major < 7 && p.d.client.Cluster:
		p.add(driver.SeverityInfo, "version", "it is Redis "+v+", so each signal of a grant goes to all nodes", "use Redis 7.0 or later, which has sharded channels")
	}
}

func (p *examinedServer) checkMemory() {
	limit, policy := p.number("maxmemory"), p.field("maxmemory_policy")
	switch {
	case policy != "noeviction" && policy != "" && limit > 0:
		p.add(driver.SeverityError, "maxmemory-policy", policy+": when the memory is full, Redis deletes held locks and fences, and grants the locks again",
			"use noeviction, or a server for locks alone")
	case policy != "noeviction" && policy != "":
		p.add(driver.SeverityInfo, "maxmemory-policy", policy+": once maxmemory is set, Redis may delete held locks", "use noeviction")
	case limit > 0 && p.number("used_memory") > limit/10*9:
		p.add(driver.SeverityWarning, "maxmemory", "more than nine tenths are used: when it is full, no new lease is granted (leases can be renewed and released)",
			"raise maxmemory, or use a server for locks alone")
	}
}

// checkPersistence examines which data a restart loses. After the loss of a lock, the
// server grants it to others while its holder still relies on it. Fences then rise by the
// clock alone.
func (p *examinedServer) checkPersistence() {
	if p.field("loading") == "1" {
		p.add(driver.SeverityError, "persistence", "the server is still reading its data", "wait until it has read them")
	}
	if p.field("rdb_last_bgsave_status") == "err" || p.field("aof_last_write_status") == "err" {
		p.add(driver.SeverityError, "persistence", "the last attempt to save the data failed: the server refuses writes, or will lose all data since", "look at its disk and its log")
	}
	if p.field("aof_enabled") == "1" {
		if f, known := p.setting("appendfsync"); known && f == "no" {
			p.add(driver.SeverityInfo, "persistence", "appendfsync is no: a crash of the machine loses the writes that the system had not flushed", "appendfsync everysec")
		}
		return
	}
	lost := "a restart of the server loses all locks"
	if save, known := p.setting("save"); save != "" {
		lost = "a crash of the server loses the locks since the last snapshot (save " + save + ")"
	} else if !known {
		lost = "a crash of the server loses the locks of the last minutes, or all"
	}
	if p.number("connected_slaves") > 0 {
		lost += ", and so do its replicas, if it is back before one of them takes over"
	}
	p.add(driver.SeverityWarning, "persistence", "appendonly is off: "+lost+", and held names are granted again. Fences still rise, unless the clock goes back",
		"appendonly yes, or let writers check the fence")
}

// checkPassword examines whether the password has any effect: if the default user needs
// no password, the server accepts any. It examines nothing if the URL has another user,
// because the operator has then configured users. Such a user often lacks the right to
// ask, and each refusal adds a line to the server's ACL LOG.
func (p *examinedServer) checkPassword() {
	if !p.d.client.Password {
		return
	}
	if answer, err := p.ask(p.ctx, "ACL", "GETUSER", "default"); err == nil && slices.Contains(strings.Fields(answer), "nopass") {
		p.add(driver.SeverityWarning, "authentication", "a password is given, but the server accepts any password of the user \"default\": every client that reaches it can take and release any lock",
			"set one (requirepass, or ACL SETUSER), or leave it out of the URL")
	}
}

// checkReplication examines which grants a fail-over may lose. Replication is
// asynchronous, so no setting makes a fail-over keep all grants.
func (p *examinedServer) checkReplication() {
	if role := p.field("role"); role != "master" {
		p.add(driver.SeverityError, "role", "the server is a "+role+", which grants no lease", "give the master's address, or those of the Sentinels with master_set")
		return
	}
	n := p.number("connected_slaves")
	if want := int64(p.d.WaitReplicas); want > n {
		p.add(driver.SeverityError, "wait", fmt.Sprintf("%d replicas must acknowledge each grant, but %d are connected: no lease is granted", want, n), "connect more, or wait for fewer")
	}
	if n == 0 {
		if p.d.client.Cluster {
			p.add(driver.SeverityInfo, "replicas", "it has no replica: when it dies, its names cannot be locked until it is back", "give each master a replica")
		}
		return
	}
	for i := range n {
		if replica := p.field("slave" + strconv.FormatInt(i, 10)); replica != "" && !strings.Contains(replica, "state=online") {
			p.add(driver.SeverityWarning, "replicas", "a replica is not up to date: "+replica, "mend it: a fail-over to it would lose locks")
		}
	}
	goodReplicas := p.field("min_slaves_good_slaves") // INFO has it only if both settings are above 0
	minReplicas, known := p.setting("min-replicas-to-write")
	switch {
	case goodReplicas == "" || known && minReplicas == "0":
		p.add(driver.SeverityWarning, "min-replicas-to-write", "it is 0: a master that is cut off from its replicas still grants locks, and so does the new master",
			"set it to 1, and min-replicas-max-lag to a few seconds, which limits that time. A fail-over can still lose the last grants, so let writers check the fence")
	case known && goodReplicas < minReplicas && len(goodReplicas) <= len(minReplicas):
		p.add(driver.SeverityError, "min-replicas-to-write", "it is "+minReplicas+", but "+goodReplicas+" replicas are connected: no lease can be granted, renewed or released", "look at the replicas")
	default:
		if lag, known := p.setting("min-replicas-max-lag"); known && len(lag) > 1 && lag != "10" {
			p.add(driver.SeverityInfo, "min-replicas-max-lag", "it is "+lag+" s: for this time, a master that is cut off still grants locks, and so does the new master", "set it to 10 s or less")
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

func (p *examinedServer) checkConnections() {
	if limit := p.number("maxclients"); limit > 0 && p.number("connected_clients") > limit/10*9 {
		p.add(driver.SeverityWarning, "maxclients", "more than nine tenths of the connections that the server allows are in use", "raise maxclients")
	}
}

func (p *examinedServer) checkCluster() {
	if p.field("cluster_enabled") != "1" {
		return
	}
	if !p.d.client.Cluster {
		p.add(driver.SeverityError, "cluster", "the server is a node of a cluster, but the client uses it as a single server: only names in its slots can be locked",
			"use a cluster client (leave out cluster=false)")
	}
	answer, err := p.ask(p.ctx, "CLUSTER", "INFO")
	if err != nil {
		p.add(driver.SeverityInfo, "cluster", "CLUSTER INFO is refused, so the state of the cluster is unknown", "give the user +cluster|info")
		return
	}
	for line := range strings.SplitSeq(strings.TrimPrefix(answer, "txt:"), "\n") {
		// with RESP3 the type may be the first field
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); {
		case key == "cluster_state" && value != "ok":
			p.add(driver.SeverityError, "cluster", "cluster_state is "+value+": the node serves no name", "redis-cli --cluster check")
		case key == "cluster_slots_assigned" && value != strconv.Itoa(slotCount):
			p.add(driver.SeverityError, "cluster", "only "+value+" of "+strconv.Itoa(slotCount)+" slots belong to a node: other names cannot be locked", "redis-cli --cluster fix")
		}
	}
}

// checkClock compares the server's clock with this host's. A wrong clock matters: fences
// follow it, and an operator may later set it back.
func (p *examinedServer) checkClock() {
	sent := time.Now()
	answer, err := p.ask(p.ctx, "TIME")
	server := readTime(answer)
	if err != nil || server == 0 {
		return
	}
	difference, uncertainty := time.UnixMicro(server).Sub(sent), time.Since(sent)
	severity := driver.SeverityInfo
	switch distance := time.Duration(math.Abs(float64(difference))); {
	case distance > uncertainty+time.Minute:
		severity = driver.SeverityWarning
	case distance < uncertainty+time.Second:
		return
	}
	p.add(severity, "clock", fmt.Sprintf("it differs from this machine's clock by %v: when it is corrected, leases end early or late by as much, and after a fail-over "+
		"to a server that is behind, fences rise only for names that it remembers", difference.Round(time.Second)), "keep the clocks right with NTP")
}
