package redislock_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestTheDoctorExaminesReplicas(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	replica := redistest.StartReplica(t, server, "--appendonly", "yes")
	d := openDriver(t, "redis://"+server.Addr)
	servertest.FindsOnly(t, d, "warning min-replicas-to-write", server.Addr)
	server.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	server.Do("CONFIG", "SET", "min-replicas-max-lag", "30")
	servertest.FindsOnly(t, d, "info min-replicas-max-lag", "30 s")
	server.Do("CONFIG", "SET", "min-replicas-max-lag", "10")
	servertest.FindsOnly(t, d)
	server.Do("CONFIG", "SET", "min-replicas-to-write", "2")
	servertest.Finds(t, d, "error min-replicas-to-write", "no lease can be granted")
	servertest.Finds(t, openDriver(t, "redis://"+replica.Addr), "error role", replica.Addr, "slave")
}

// Many managed servers forbid CONFIG. INFO shows most of the settings.
func TestTheDoctorReportsHiddenSettings(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	all := strings.Join([]string{rights, rightsToPush, rightsToTrack, rightsToList}, " ")
	found := servertest.FindingsOf(t, openDriver(t, setUser(t, server, all+" +info")))
	if len(found) != 3 || !found.Have("error maxmemory-policy", "allkeys-lru") || !found.Have("warning persistence", "the last minutes, or all") ||
		!found.Have("info server settings", "CONFIG GET is refused", "save") {
		t.Error(found)
	}
	servertest.FindsOnly(t, openDriver(t, setUser(t, server, all)), "info server settings", "INFO is refused")
}

// On a server of any version, the doctor tries each command that the scripts call.
func TestTheDoctorNamesEachRightThatIsMissing(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	d := openDriver(t, setUser(t, server, allRights))
	servertest.FindsOnly(t, d)
	for right := range strings.FieldsSeq(allRights) {
		want := []string{"error rights", strings.TrimPrefix(right, "+")}
		switch right {
		case "-@all", "+hello", "+ping", "+cluster|slots", "+client|tracking", "+client|caching", "+unsubscribe":
			continue // needed to connect, in a cluster, to arm, or to unsubscribe
		case "+evalsha", "+eval":
			want = []string{"error"}
		case "~pawl:*":
			want = []string{"error rights", "on Pawl's keys"}
		case "&pawl:*", "+publish", "+subscribe":
			want = []string{"warning push"}
		case "+scan":
			want = []string{"info rights", "listed"}
		case "+mget":
			want = []string{"info rights", "a script for each name"}
		case "+info", "+config|get":
			want = []string{"info server settings"}
		}
		// A driver that was opened earlier would stay subscribed.
		d := openDriver(t, setUser(t, server, strings.Replace(allRights+" ", right+" ", "", 1)))
		if found := servertest.FindingsOf(t, d); !found.Have(want...) {
			t.Errorf("without %s: %v; want %q", right, found, want)
		}
	}
	if size := server.Do("DBSIZE"); size != ":0\r\n" {
		t.Errorf("the doctor left %s keys", size)
	}
}

// A password that the server does not require protects nothing.
func TestTheDoctorFindsAPasswordThatIsNotRequired(t *testing.T) {
	t.Parallel()
	open := redistest.Start(t, "--appendonly", "yes")
	for _, who := range []string{":sesame@", "default:sesame@"} {
		servertest.FindsOnly(t, openDriver(t, "redis://"+who+open.Addr), "warning authentication", open.Addr, `"default"`)
	}
	servertest.FindsOnly(t, openDriver(t, "redis://"+open.Addr))
	closed := redistest.Start(t, "--appendonly", "yes", "--requirepass", "sesame")
	servertest.FindsOnly(t, openDriver(t, "redis://:sesame@"+closed.Addr))
}

func TestTheDoctorAsksTheSentinels(t *testing.T) {
	skipIfShort(t, "fail-overs")
	t.Parallel()
	group := redistest.StartSentinelGroup(t, "--appendonly", "yes")
	setDownAfter(group.Sentinels, time.Minute)
	group.Master.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	group.Replica.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	d := openDriver(t, group.URL())
	servertest.FindsOnly(t, d)
	group.Master.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	servertest.FindsOnly(t, d, "info maxmemory-policy", group.Master.Addr)
	group.Master.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	group.Sentinels[0].Kill()
	group.Sentinels[1].Kill()
	setDownAfter(group.Sentinels[2:], 500*time.Millisecond)
	becomes(t, "the third has noticed", func() bool {
		found := servertest.FindingsOf(t, d)
		return found.Have("warning Sentinel", group.Sentinels[0].Addr, "does not answer") && found.Have("warning Sentinel", group.Sentinels[2].Addr, "would not be replaced")
	})
}

// setDownAfter makes Sentinels wait that long before they consider another server dead.
// On a busy machine they would otherwise replace a healthy master.
func setDownAfter(sentinels []*redistest.Server, d time.Duration) {
	for _, s := range sentinels {
		s.Do("SENTINEL", "SET", "main", "down-after-milliseconds", strconv.FormatInt(d.Milliseconds(), 10))
	}
}

func TestTheDoctorSaysWhyNothingIsTrackedOrPushed(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	for url, why := range map[string]string{
		"redis://" + server.Addr + "?protocol=2":                                                            "protocol=2",
		"redis://" + server.Addr + "?tracking=false":                                                        "tracking=false",
		setUser(t, server, strings.Join([]string{rights, rightsToPush, rightsToList, rightsToDoctor}, " ")): "NOPERM",
	} {
		servertest.FindsOnly(t, openDriver(t, url), "info tracking", why)
	}
	servertest.FindsOnly(t, openDriver(t, "redis://"+server.Addr+"?push=false"), "info push")
}

func TestTheDoctorReturnsAnErrorForADeadServer(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	server.Kill()
	_, err := d.Diagnose(ctx)
	unavailable(t, err, false, "")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if found, err := d.Diagnose(canceled); err == nil {
		t.Errorf("%v; want an error, because ctx has ended", found)
	}
}

func TestTheDoctorCountsTheReplicasThatAreWaitedFor(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	d := openDriver(t, "redis://"+server.Addr+"?wait_replicas=1")
	servertest.Finds(t, d, "error wait", server.Addr, "no lease is granted")
	redistest.StartReplica(t, server)
	if found := servertest.FindingsOf(t, d); found.Have("error wait") {
		t.Error(found)
	}
	withoutRight := openDriver(t, setUser(t, server, rights)+"?wait_replicas=1&wait_timeout=20s")
	servertest.Finds(t, withoutRight, "error rights", "WAIT is refused")
	_, err := withoutRight.Acquire(ctx, mutex("job"))
	unavailable(t, err, true, "ACL")
	if seen, err := d.Inspect(ctx, "job"); err != nil || len(seen.Holders) > 0 {
		t.Errorf("%+v, %v; want no holder", seen, err)
	}
}

// If the server lacks a command, or has another name for it, the first step that needs it
// returns an error, and the doctor names the command.
func TestACommandThatTheServerLacksIsNamed(t *testing.T) {
	t.Parallel()
	for command, step := range map[string]func(t *testing.T, d driver.Driver) error{
		"GETEX": func(t *testing.T, d driver.Driver) error {
			return d.Release(ctx, lease(mutex("job")))
		},
		"UNLINK": func(t *testing.T, d driver.Driver) error {
			_, err := d.Acquire(ctx, reader("job"))
			return err
		},
		"HLEN": func(t *testing.T, d driver.Driver) error {
			gets(t, d, reader("job"))
			_, err := d.Acquire(ctx, mutex("job"))
			return err
		},
		"SET": func(t *testing.T, d driver.Driver) error {
			_, err := d.Acquire(ctx, mutex("job"))
			return err
		},
		"PUBLISH": nil, // only waiters need it
		"INFO":    nil, // only the doctor needs it
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendonly", "yes", "--rename-command", command, "")
			d := openDriver(t, "redis://"+server.Addr)
			if step != nil {
				unavailable(t, step(t, d), true, "doctor")
			} else {
				c := queued("job")
				gets(t, d, mutex("job"))
				waits(t, d, c)
			}
			found := servertest.FindingsOf(t, d)
			if named := found.Have("error commands", server.Addr, command) || command == "INFO" && found.Have("info server settings", "unknown command"); !named || found.Have("error rights") {
				t.Errorf("%v; want %s named", found, command)
			}
		})
	}
}
