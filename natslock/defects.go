package natslock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
)

// A defect makes a bucket unfit for locks, because the server forgets held names, or
// shows old values.
type defect struct{ subject, detail, advice string }

func (d *defect) Error() string { return d.subject + ": " + d.detail }

// edit returns the beginning of the command that mends a bucket.
func (s *store) edit() string { return "nats stream edit " + s.stream + " " }

// defects returns all defects of a bucket with this configuration.
func (s *store) defects(is *jetstream.StreamConfig) (all []*defect) {
	const another = "let natslock make one"
	add := func(bad bool, subject, detail, advice string) {
		if bad {
			all = append(all, &defect{subject, detail, advice})
		}
	}
	add(is.MaxAge > 0, "max age", fmt.Sprintf("the bucket drops a key %v after it was last written, though the lease in it is longer", is.MaxAge),
		s.edit()+"--max-age=0")
	add(is.Discard == jetstream.DiscardOld && (is.MaxBytes > 0 || is.MaxMsgs > 0), "discard policy",
		"when the bucket is full, it drops the oldest locks while they are held", s.edit()+"--discard=new")
	add(is.MaxMsgsPerSubject != 1, "history", "the bucket keeps several values of a key: when it forgets the newest, an old one comes back, with a lease that has ended",
		s.edit()+"--max-msgs-per-subject=1")
	add(is.DiscardNewPerSubject, "discard policy", "the bucket takes no second value of a key: it is never released", another)
	add(is.NoAck, "acknowledgements", "the server does not say what it has stored", s.edit()+"--ack")
	add(is.Retention != jetstream.LimitsPolicy, "retention policy", "the bucket drops what a consumer has read, or what none waits for", another)
	add(is.Mirror != nil || len(is.Sources) > 0, "mirror", "the bucket is filled from another one, whose values do not compare with its own", another)
	add(is.SubjectTransform != nil, "subject transform", "the bucket stores a key under another name, where no client finds it", another)
	return all
}

// fit returns the first defect of the bucket, or of the server, as an error.
func (s *store) fit(is *jetstream.StreamConfig) error {
	for _, d := range s.defects(is) {
		return &driver.Error{Backend: s.where(), Err: d, Hint: "mend the bucket, or use another one: " + d.advice, Permanent: true}
	}
	if version := s.nc.ConnectedServerVersion(); isOld(version) {
		return &driver.Error{Backend: s.where(), Err: fmt.Errorf("the server is nats-server %.40q", version), Hint: "run nats-server 2.11 or later", Permanent: true}
	}
	return nil
}

// isOld reports whether a server has no TTLs of messages.
func isOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (m < 2 || m == 2 && n < 11)
}
