package natslock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
)

// A release that finds nothing writes that: a claim that was given up before it, and
// arrives after it, finds another sequence. So the log of a leader that was cut off and
// the log of the next leader agree on it.
func TestAReleaseThatFindsNothingIsWritten(t *testing.T) {
	t.Parallel()
	url, bucket, server := place(t)
	d := openDriver(t, url)
	nc, _ := connect(t, server)
	if err := d.Release(ctx, lease(mutex("n"))); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Errorf("Release: %v; want ErrNoSuchLease", err)
	}
	late := nats.NewMsg("$KV." + bucket + ".n")
	late.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	r, err := nc.RequestMsg(late, hang)
	if err != nil || !strings.Contains(string(r.Data), "wrong last sequence") {
		t.Errorf("a claim that comes after the release is stored: %s, %v", r.Data, err)
	}
}
