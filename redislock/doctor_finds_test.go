package redislock_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/redistest"
)

// One server, whose settings are made worse one after the other, and examined through
// both packages.
func TestTheDoctorFindsEachBadSetting(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	through := overGoRedis(t, redis.NewClient(&redis.Options{Addr: server.Addr}))
	d := start(t, "redis://"+server.Addr)
	for _, bad := range []struct{ set, good, want, says string }{
		{"maxmemory-policy allkeys-lru maxmemory 100mb", "noeviction 0", "error maxmemory-policy", "allkeys-lru"},
		{"maxmemory-policy volatile-ttl maxmemory 100mb", "noeviction 0", "error maxmemory-policy", "volatile-ttl"},
		{"maxmemory-policy allkeys-random", "noeviction", "info maxmemory-policy", "as soon as"},
		{"maxmemory 1000000", "0", "warning maxmemory", "nine tenths"},
		{"appendfsync no", "everysec", "info persistence", "appendfsync"},
		{}, // all is well again
		{"appendonly no", "", "warning persistence", "all locks are forgotten"},
	} {
		words, good := strings.Fields(bad.set), strings.Fields(bad.good)
		for i := 0; i < len(words); i += 2 {
			server.Do("CONFIG", "SET", words[i], words[i+1])
		}
		if bad.set == "" {
			if found := findings(t, d); len(found) > 0 {
				t.Errorf("%v; want nothing", found)
			}
			if found := findings(t, through); len(found) != 1 || !found.have("info tracking", "go-redis") {
				t.Errorf("%v; want no more than that go-redis has no tracking", found)
			}
			continue
		}
		for who, doctor := range map[string]driver.Diagnoser{"redislock": d, "goredislock": through} {
			if found := findings(t, doctor); !found.have(bad.want, server.Addr, bad.says) {
				t.Errorf("%s with %s: %v; want %s, with %q", who, bad.set, found, bad.want, bad.says)
			}
		}
		for i := range good {
			server.Do("CONFIG", "SET", words[2*i], good[i])
		}
	}
	server.Do("CONFIG", "SET", "save", "3600 1")
	if found := findings(t, d); !found.have("warning persistence", "save 3600 1") {
		t.Error(found)
	}
}

func TestTheDoctorLooksAtReplicas(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	replica := redistest.StartReplica(t, server, "--appendonly", "yes")
	d := start(t, "redis://"+server.Addr)
	if found := findings(t, d); len(found) != 1 || !found.have("warning min-replicas-to-write", server.Addr) {
		t.Error(found)
	}
	server.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	server.Do("CONFIG", "SET", "min-replicas-max-lag", "30")
	if found := findings(t, d); len(found) != 1 || !found.have("info min-replicas-max-lag", "30 s") {
		t.Error(found)
	}
	server.Do("CONFIG", "SET", "min-replicas-max-lag", "10")
	if found := findings(t, d); len(found) != 0 {
		t.Error(found)
	}
	server.Do("CONFIG", "SET", "min-replicas-to-write", "2")
	if found := findings(t, d); !found.have("error min-replicas-to-write", "nothing can be granted") {
		t.Error(found)
	}
	if found := findings(t, start(t, "redis://"+replica.Addr)); !found.have("error role", replica.Addr, "slave") {
		t.Error(found)
	}
}

// Many managed servers forbid CONFIG, and INFO has most of it.
func TestTheDoctorSaysWhatAServerDoesNotTell(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	all := strings.Join([]string{rights, rightsToPush, rightsToTrack, rightsToList}, " ")
	found := findings(t, start(t, user(t, server, all+" +info")))
	if len(found) != 3 || !found.have("error maxmemory-policy", "allkeys-lru") || !found.have("warning persistence", "the last minutes, or all") ||
		!found.have("info server settings", "CONFIG GET is refused", "save") {
		t.Error(found)
	}
	found = findings(t, start(t, user(t, server, all)))
	if len(found) != 1 || !found.have("info server settings", "INFO is refused") {
		t.Error(found)
	}
}

// What the scripts call is known by trying it, on a server of any version.
func TestTheDoctorNamesEachRightThatIsMissing(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	all := strings.Join([]string{rights, rightsToPush, rightsToTrack, rightsToList, rightsToDoctor}, " ")
	d := start(t, user(t, server, all))
	if found := findings(t, d); len(found) != 0 {
		t.Errorf("with all rights: %v", found)
	}
	for right := range strings.FieldsSeq(all) {
		want := []string{"error rights", strings.TrimPrefix(right, "+")}
		switch right {
		case "-@all", "+hello", "+ping", "+cluster|slots", "+client|tracking", "+client|caching", "+unsubscribe":
			continue // needed to connect, by a cluster, to arm, or to leave
		case "+evalsha", "+eval":
			want = []string{"error"}
		case "~pawl:*":
			want = []string{"error rights", "on our keys"}
		case "&pawl:*", "+publish", "+subscribe":
			want = []string{"warning push"}
		case "+scan":
			want = []string{"info rights", "listed"}
		case "+info", "+config|get":
			want = []string{"info server settings"}
		}
		server.Do(append([]string{"ACL", "SETUSER", "joe", "reset", "on", ">sesame"}, strings.Fields(strings.Replace(all+" ", right+" ", "", 1))...)...)
		d := start(t, "redis://joe:sesame@"+server.Addr) // what was subscribed to before would stay
		if found := findings(t, d); !found.have(want...) {
			t.Errorf("without %s: %v; want %q", right, found, want)
		}
	}
	if size := server.Do("DBSIZE"); size != ":0\r\n" {
		t.Errorf("the doctor left %s keys", size)
	}
}

// A password that nobody asks for keeps nobody out.
func TestTheDoctorSaysThatNobodyAsksForThePassword(t *testing.T) {
	t.Parallel()
	open := redistest.Start(t, "--appendonly", "yes")
	for _, who := range []string{":sesame@", "default:sesame@"} {
		if found := findings(t, start(t, "redis://"+who+open.Addr)); len(found) != 1 || !found.have("warning authentication", open.Addr, `"default"`) {
			t.Errorf("%s: %v", who, found)
		}
	}
	if found := findings(t, start(t, "redis://"+open.Addr)); len(found) != 0 {
		t.Errorf("where none is given: %v", found)
	}
	closed := redistest.Start(t, "--appendonly", "yes", "--requirepass", "sesame")
	if found := findings(t, start(t, "redis://:sesame@"+closed.Addr)); len(found) != 0 {
		t.Errorf("where it is asked for: %v", found)
	}
}

func TestTheDoctorExaminesEachMasterOfACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	for _, node := range nodes[:2] {
		node.Do("CONFIG", "SET", "appendonly", "yes")
		for redistest.Field(node.Do("INFO", "persistence"), "aof_rewrite_in_progress") != "0" {
			time.Sleep(10 * time.Millisecond) // else its child goes on writing when the test has ended
		}
	}
	nodes[1].Do("CONFIG", "SET", "maxmemory", "100mb")
	nodes[1].Do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	through := overGoRedis(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}}))
	for who, doctor := range map[string]driver.Diagnoser{"redislock": start(t, "redis://"+nodes[0].Addr), "goredislock": through} {
		found := findings(t, doctor)
		if !found.have("error maxmemory-policy", nodes[1].Addr, "volatile-lru") || !found.have("warning persistence", nodes[2].Addr) ||
			!found.have("info replicas", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr) {
			t.Errorf("%s: %v", who, found)
		}
		for _, f := range found {
			if strings.HasPrefix(f, "error") && (strings.Contains(f, nodes[0].Addr) || strings.Contains(f, nodes[2].Addr)) {
				t.Errorf("%s: %s; want nothing of the other nodes", who, f)
			}
		}
	}
	alone := start(t, "redis://"+nodes[0].Addr+"?cluster=false")
	if found := findings(t, alone); !found.have("error cluster", "as if it were alone") {
		t.Error(found)
	}
	// The driver is there before the node dies: it is known, and does not answer.
	d := start(t, "redis://"+nodes[0].Addr)
	nodes[2].Kill()
	for tries := 0; ; tries++ { // until the others have noticed
		found := findings(t, d)
		if found.have("error server", nodes[2].Addr, "does not answer") && found.have("error cluster", nodes[0].Addr, "cluster_state is fail") {
			break
		}
		if tries == 200 {
			t.Fatal(found)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestTheDoctorAsksTheSentinels(t *testing.T) {
	t.Parallel()
	group := redistest.StartGroup(t, "--appendonly", "yes")
	patient(group.Sentinels, time.Minute)
	group.Master.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	group.Replica.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	d := start(t, group.URL())
	if found := findings(t, d); len(found) != 0 {
		t.Errorf("of a healthy group: %v", found)
	}
	group.Master.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if found := findings(t, d); len(found) != 1 || !found.have("info maxmemory-policy", group.Master.Addr) {
		t.Errorf("%v; want it said of the master of the moment, %s", found, group.Master.Addr)
	}
	group.Master.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	group.Sentinels[0].Kill()
	group.Sentinels[1].Kill()
	patient(group.Sentinels[2:], 500*time.Millisecond)
	for tries := 0; ; tries++ { // until the third has noticed
		found := findings(t, d)
		if found.have("warning Sentinel", group.Sentinels[0].Addr, "does not answer") && found.have("warning Sentinel", group.Sentinels[2].Addr, "would not be replaced") {
			break
		}
		if tries == 200 {
			t.Fatal(found)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// patient makes Sentinels wait that long before they hold another server for dead. On a
// busy machine they would otherwise replace a master that is well.
func patient(sentinels []*redistest.Server, d time.Duration) {
	for _, s := range sentinels {
		s.Do("SENTINEL", "SET", "main", "down-after-milliseconds", strconv.FormatInt(d.Milliseconds(), 10))
	}
}

func TestTheDoctorSaysWhyNothingIsTracked(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	for url, why := range map[string]string{
		"redis://" + server.Addr + "?protocol=2":                                                         "protocol=2",
		"redis://" + server.Addr + "?tracking=false":                                                     "tracking=false",
		"redis://" + server.Addr + "?lazy=true":                                                          "lazy=true",
		user(t, server, strings.Join([]string{rights, rightsToPush, rightsToList, rightsToDoctor}, " ")): "NOPERM",
	} {
		if found := findings(t, start(t, url)); len(found) != 1 || !found.have("info tracking", why) {
			t.Errorf("%s: %v; want the reason %q", url, found, why)
		}
	}
}

func TestTheDoctorOfADeadServerIsAnError(t *testing.T) {
	server := redistest.Start(t)
	d := start(t, "redis://"+server.Addr)
	server.Kill()
	_, err := d.Diagnose(ctx)
	unavailable(t, err, false, "")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if found, err := d.Diagnose(gone); err == nil {
		t.Errorf("%v; want the end of its ctx", found)
	}
}

// overGoRedis is a driver that is closed, and its client too, when the test ends.
func overGoRedis(t *testing.T, client redis.UniversalClient) *goredislock.Driver {
	t.Helper()
	d, err := goredislock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = d.Close(), client.Close() })
	return d
}

// found has a line for each finding: severity, subject, detail.
type found []string

func findings(t *testing.T, d driver.Diagnoser) (all found) {
	t.Helper()
	list, err := d.Diagnose(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Advice == "" {
			t.Errorf("%+v has no advice", f)
		}
		all = append(all, f.Severity+" "+f.Subject+" "+f.Detail)
	}
	return all
}

// have reports whether one finding begins with the first, and has all the others.
func (f found) have(words ...string) bool {
	for _, line := range f {
		ok := strings.HasPrefix(line, words[0])
		for _, w := range words[1:] {
			ok = ok && strings.Contains(line, w)
		}
		if ok {
			return true
		}
	}
	return false
}
