package natslock_test

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

// bucketOf returns the configuration of a bucket as natslock creates it.
func bucketOf(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, AllowMsgTTL: true, FirstSeq: uint64(time.Now().UnixMicro()),
		RePublish: &jetstream.RePublish{Source: "$KV." + name + ".>", Destination: "_PAWL." + name + ".>", HeadersOnly: true},
	}
}

// unfitConfigs has changes that make a bucket lose leases, or return old values.
var unfitConfigs = map[string]struct {
	change  func(*jetstream.StreamConfig)
	subject string
}{
	"age":       {func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = 10*time.Second, time.Second }, "max age"},
	"bytes":     {func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 }, "discard policy"},
	"messages":  {func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 100 }, "discard policy"},
	"once":      {func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = true }, "discard policy"},
	"history":   {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, "history"},
	"unlimited": {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 }, "history"},
	"interest":  {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, "retention policy"},
	"workqueue": {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "retention policy"},
	"no-ack":    {func(c *jetstream.StreamConfig) { c.NoAck = true }, "acknowledgements"},
	"sources":   {func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "KV_other"}} }, "mirror"},
	"mirror": {func(c *jetstream.StreamConfig) {
		c.Mirror, c.Subjects, c.RePublish, c.FirstSeq = &jetstream.StreamSource{Name: "KV_other"}, nil, nil, 0
	}, "mirror"},
	"transform": {func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "$KV.transform.>", Destination: "$KV.transform.x.>"}
	}, "subject transform"},
}

// A bucket that loses leases would grant held names again, so Open fails, with a hint
// that says how to mend the bucket.
func TestAnUnfitBucketIsRefused(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	_, js := connect(t, server)
	for name, tt := range unfitConfigs {
		c := bucketOf(name)
		tt.change(&c)
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(name, err)
		}
		d, err := asDriver(natslock.Open(ctx, "nats://"+server.Addr+"/"+name))
		if d != nil {
			_ = d.Close()
		}
		if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent || !strings.Contains(err.Error(), tt.subject+":") || !strings.Contains(e.Hint, "mend the bucket") {
			t.Errorf("%s: %v; want an error about its %s", name, err, tt.subject)
		}
	}
}

// A bucket becomes unfit while it is open. Once the driver has read its configuration, it
// grants no lease, and the doctor reports the cause, until the bucket is mended.
func TestABucketThatBecomesUnfit(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	_, js := connect(t, server)
	nc, _ := connect(t, server)
	d, err := asDriver(natslock.New(nc, nil)) // reads the configuration on first use
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	c := bucketOf("pawl")
	c.MaxAge = time.Hour
	must(js.CreateStream(ctx, c))(t)
	for range 2 {
		if _, err := d.Acquire(ctx, mutex("n")); !isPermanent(err) || !strings.Contains(err.Error(), "max age") {
			t.Fatalf("Acquire: %v; want it refused", err)
		}
	}
	if got := subjects(t, d, "error"); !slices.Equal(got, []string{"max age"}) {
		t.Errorf("the doctor finds %q", got)
	}
	for i, forget := range []func(*natslock.Driver){natslock.ForgetTime, natslock.ExpireConfig} {
		c.MaxAge = 0
		must(js.UpdateStream(ctx, c))(t)
		gets(t, d, mutex(fmt.Sprint("n", i)))
		c.MaxAge = time.Hour
		must(js.UpdateStream(ctx, c))(t)
		forget(d) // the driver reads the configuration when it asks for the time, and each minute
		if _, err := d.Acquire(ctx, mutex("other")); !isPermanent(err) || !strings.Contains(err.Error(), "max age") {
			t.Fatalf("Acquire: %v; want it refused", err)
		}
	}
}

// A bucket with markers for deleted keys, which NATS' tools can create, is fit.
func TestABucketWithDeleteMarkers(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	_, js := connect(t, server)
	c := bucketOf("pawl")
	c.SubjectDeleteMarkerTTL = time.Minute
	stream, err := js.CreateStream(ctx, c)
	noError(t, err)
	d := openDriver(t, "nats://"+server.Addr)
	m := mutex("n")
	first := gets(t, d, m)
	if err := stream.Purge(ctx); err != nil { // leaves a marker of each key
		t.Fatal(err)
	}
	isLost(t, d, m)
	if second := gets(t, d, mutex("n")); second.Fence <= first.Fence {
		t.Errorf("the fence is %d after %d", second.Fence, first.Fence)
	}
}

// A server that is too old does not support TTLs of messages.
func TestAServerThatIsTooOldIsRefused(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	for version, refused := range map[string]bool{"2.10.29": true, "1.4.1": true, "2.11.0-preview.2": false, "3.0.0": false, "dev": false} {
		nc, _ := connect(t, server, nats.SetCustomDialer(versionDialer(version)))
		d, err := asDriver(natslock.New(nc, nil))
		noError(t, err)
		_, err = d.Acquire(ctx, mutex(version))
		e, ok := errors.AsType[*driver.Error](err)
		if refused != (err != nil) || refused && (!ok || !e.Permanent || !strings.Contains(e.Hint, "2.11")) {
			t.Errorf("%s: %v", version, err)
		}
		noError(t, d.Close())
	}
}

// versionDialer connects to a server, and replaces the version that it reports.
type versionDialer string

func (v versionDialer) Dial(network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &versionConn{Conn: c, version: string(v)}, err
}

type versionConn struct {
	net.Conn
	version string
	unread  []byte // received bytes, with the replaced version
}

var infoVersion = regexp.MustCompile(`(INFO \{[^\r]*?"version":")[^"]*`)

func (c *versionConn) Read(b []byte) (int, error) {
	if len(c.unread) == 0 {
		buffer := make([]byte, 32<<10)
		n, err := c.Conn.Read(buffer)
		if err != nil {
			return 0, err
		}
		c.unread = infoVersion.ReplaceAll(buffer[:n], []byte("${1}"+c.version))
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}
