package natslock_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

// subjects are the subjects of the findings of a severity, besides the server's version.
func subjects(t *testing.T, d *natslock.Driver, severity ...driver.Severity) (all []string) {
	t.Helper()
	found, err := d.Diagnose(ctx)
	noError(t, err)
	for _, f := range found {
		if slices.Contains(severity, f.Severity) && f.Advice != "" {
			all = append(all, f.Subject)
		}
	}
	return all
}

func TestDiagnoseFindsWhatSomebodyChanged(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "max_payload: 128KB")
	_, js := connect(t, server)
	for name, one := range map[string]struct {
		change   func(*jetstream.StreamConfig)
		severity driver.Severity
		want     []string
	}{
		"nothing":   {func(*jetstream.StreamConfig) {}, "error", nil},
		"memory":    {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "error", []string{"storage"}},
		"async":     {func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, "error", []string{"persist mode"}},
		"payload":   {func(*jetstream.StreamConfig) {}, "warning", []string{"max payload"}},
		"no-ttl":    {func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false }, "warning", []string{"message TTL", "max payload"}},
		"msg-size":  {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1 << 10 }, "warning", []string{"max payload", "max message size"}},
		"info":      {func(*jetstream.StreamConfig) {}, "info", []string{"replicas", "sync interval"}},
		"republish": {func(c *jetstream.StreamConfig) { c.RePublish = nil }, "info", []string{"republish", "replicas", "sync interval"}},
		"first":     {func(c *jetstream.StreamConfig) { c.FirstSeq = 0 }, "info", []string{"first sequence", "replicas", "sync interval"}},
	} {
		c := bucketOf(name)
		one.change(&c)
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(name, err)
		}
		d := openDriver(t, "nats://"+server.Addr+"/"+name)
		if got := subjects(t, d, one.severity); !slices.Equal(got, one.want) {
			t.Errorf("%s: it finds %q, want %q", name, got, one.want)
		}
		cycle(t, d, "n")
	}
}

// A password that the server does not ask for protects nothing.
func TestDiagnoseOfAPasswordThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	for _, who := range []string{"joe:hunter2@", "token@"} {
		if err := wants(t, openDriver(t, "nats://"+who+server.Addr), "authentication"); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
	if err := wants(t, openDriver(t, "nats://"+server.Addr)); err != nil {
		t.Errorf("where none is given: %v", err)
	}
	closed := natstest.Start(t, "authorization { user: joe, password: hunter2 }")
	if err := wants(t, openDriver(t, "nats://joe:hunter2@"+closed.Addr)); err != nil {
		t.Errorf("where it is asked for: %v", err)
	}
}

// A bucket in memory is a warning even if a majority of a cluster has it. A URL that asks
// for another storage than the bucket has is a finding.
func TestDiagnoseOfABucketInMemory(t *testing.T) {
	nightly(t, "it starts a cluster")
	t.Parallel()
	nodes, leader := cluster(t)
	addr := nodes[leader].Addr
	inMemory := openDriver(t, "nats://"+addr+"/memory?storage=memory")
	until(t, "in memory", func() error { return wants(t, inMemory, "storage") })
	alone := openDriver(t, "nats://"+addr+"/alone?storage=memory&replicas=1")
	if err := wants(t, alone, "storage", "replicas"); err != nil {
		t.Error(err)
	}
	openDriver(t, "nats://"+addr+"/file")
	other := openDriver(t, "nats://"+addr+"/file?storage=memory&replicas=1")
	if got := subjects(t, other, "info"); !slices.Equal(got, []string{"replicas", "storage", "sync interval"}) {
		t.Errorf("of a bucket that is not as the URL has it: %q", got)
	}
	if got := subjects(t, openDriver(t, "nats://"+addr+"/memory"), "info", "warning"); !slices.Equal(got, []string{"storage"}) {
		t.Errorf("of a URL that asks for nothing: %q", got)
	}
}

func TestDiagnoseOfACluster(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes, leader := cluster(t)
	d := openDriver(t, "nats://"+nodes[leader].Addr)
	until(t, "all well", func() error { return wants(t, d) })
	alone := openDriver(t, "nats://"+nodes[leader].Addr+"/alone?replicas=1")
	if err := wants(t, alone, "replicas"); err != nil {
		t.Error(err)
	}
	nodes[(leader+1)%3].Kill()
	until(t, "one is gone", func() error {
		return wants(t, d, fmt.Sprintf("replica n%d", (leader+1)%3))
	})
}

// wants returns what is wrong with the findings above info.
func wants(t *testing.T, d *natslock.Driver, want ...string) error {
	t.Helper()
	if got := subjects(t, d, "error", "warning"); !slices.Equal(got, want) {
		return fmt.Errorf("it finds %q, want %q", got, want)
	}
	return nil
}
