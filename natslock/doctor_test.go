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

// subjects returns the subjects of the findings of the severities, without the version.
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

func TestDiagnoseFindsChangedSettings(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "max_payload: 128KB")
	_, js := connect(t, server)
	for name, tt := range map[string]struct {
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
		tt.change(&c)
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(name, err)
		}
		d := openDriver(t, "nats://"+server.Addr+"/"+name)
		if got := subjects(t, d, tt.severity); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the doctor finds %q; want %q", name, got, tt.want)
		}
		cycle(t, d, "n")
	}
}

// A password that the server does not require protects nothing.
func TestDiagnoseOfAPasswordThatIsNotRequired(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	for _, user := range []string{"joe:hunter2@", "token@"} {
		if err := checkFindings(t, openDriver(t, "nats://"+user+server.Addr), "authentication"); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	if err := checkFindings(t, openDriver(t, "nats://"+server.Addr)); err != nil {
		t.Errorf("without a user: %v", err)
	}
	closed := natstest.Start(t, "authorization { user: joe, password: hunter2 }")
	if err := checkFindings(t, openDriver(t, "nats://joe:hunter2@"+closed.Addr)); err != nil {
		t.Errorf("with a required password: %v", err)
	}
}

// A bucket in memory is a warning even in a cluster. If the URL and the bucket differ in
// their storage, that is a finding.
func TestDiagnoseOfABucketInMemory(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	nodes, leader := cluster(t)
	addr := nodes[leader].Addr
	inMemory := openDriver(t, "nats://"+addr+"/memory?storage=memory")
	until(t, "a bucket in memory", func() error { return checkFindings(t, inMemory, "storage") })
	alone := openDriver(t, "nats://"+addr+"/alone?storage=memory&replicas=1")
	if err := checkFindings(t, alone, "storage", "replicas"); err != nil {
		t.Error(err)
	}
	openDriver(t, "nats://"+addr+"/file")
	other := openDriver(t, "nats://"+addr+"/file?storage=memory&replicas=1")
	if got := subjects(t, other, "info"); !slices.Equal(got, []string{"replicas", "storage", "sync interval"}) {
		t.Errorf("with a URL that differs from the bucket, the doctor finds %q", got)
	}
	if got := subjects(t, openDriver(t, "nats://"+addr+"/memory"), "info", "warning"); !slices.Equal(got, []string{"storage"}) {
		t.Errorf("with a URL without options, the doctor finds %q", got)
	}
}

func TestDiagnoseOfACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes, leader := cluster(t)
	d := openDriver(t, "nats://"+nodes[leader].Addr)
	until(t, "no finding", func() error { return checkFindings(t, d) })
	alone := openDriver(t, "nats://"+nodes[leader].Addr+"/alone?replicas=1")
	if err := checkFindings(t, alone, "replicas"); err != nil {
		t.Error(err)
	}
	nodes[(leader+1)%3].Kill()
	until(t, "a missing replica", func() error {
		return checkFindings(t, d, fmt.Sprintf("replica n%d", (leader+1)%3))
	})
}

// checkFindings returns an error unless the findings above info have these subjects.
func checkFindings(t *testing.T, d *natslock.Driver, want ...string) error {
	t.Helper()
	if got := subjects(t, d, "error", "warning"); !slices.Equal(got, want) {
		return fmt.Errorf("the doctor finds %q; want %q", got, want)
	}
	return nil
}
