package natslock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
)

// A release that finds no lease still writes an entry to the bucket, and so raises the
// sequence of the name. If a claim that was given up arrives after the release, the
// server refuses the claim, because it expects the old sequence. A write needs a
// majority, so the log of the next leader has it even if the last leader was cut off.
func TestAReleaseOfNoLeaseIsStored(t *testing.T) {
	t.Parallel()
	url, bucket, server := ownBucket(t)
	d := openDriver(t, url)
	nc, _ := connect(t, server)
	if err := d.Release(ctx, lease(mutex("n"))); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Errorf("Release: %v; want ErrNoSuchLease", err)
	}
	late := nats.NewMsg("$KV." + bucket + ".n")
	late.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	r, err := nc.RequestMsg(late, hangTime)
	if noError(t, err); !strings.Contains(string(r.Data), "wrong last sequence") {
		t.Errorf("%s; want the server to refuse a claim that arrives after the release", r.Data)
	}
}
