package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser. It examines the number of members, their
// versions, alarms and databases, the compaction of old revisions, the user and its
// rights, each entry, and the clients' clock.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	s := d.store
	if s.life.Err() != nil {
		return nil, driver.ErrClosed
	}
	if err := s.readClockInTime(ctx); err != nil {
		if e, ok := errors.AsType[*engine.ConfigError](err); ok {
			return engine.Found(driver.SeverityError, "clock", e.Problem, e.Hint), nil
		}
		return nil, s.driverError(ctx, err)
	}
	c := checkup{store: s}
	c.checkClock()
	if c.checkRights(ctx) {
		c.found = append(c.found, locktable.Damaged(ctx, d)...)
	}
	c.checkUsers(ctx)
	c.checkMembers(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	engine.SortFindings(c.found)
	return c.found, nil
}

type checkup struct {
	*store
	found engine.Findings
}

// readClockInTime reads the clock. It retries while there may be an election.
func (s *store) readClockInTime(ctx context.Context) (err error) {
	for began := time.Now(); ; {
		brief, cancel := context.WithTimeout(ctx, closeTimeout/2) // short, because the member may be dead
		err = s.readClock(brief)
		cancel()
		if err == nil || time.Since(began) > backgroundTimeout || isAny(err, rpctypes.ErrGRPCNotSupportedForLearner) {
			return err
		}
		if e, ok := errors.AsType[*driver.Error](s.driverError(ctx, err)); ok && e.Permanent || backoff.Wait(ctx, resubscribePause) != nil {
			return err
		}
	}
}

// checkClock compares the clients' clock with this machine's clock. The clients' clock
// begins with the time of day, and falls behind while no client is open. If it is an hour
// ahead, so are the fences.
func (c *checkup) checkClock() {
	w, ok := c.store.clock.Window(time.Now())
	ahead := locktable.At(time.Now()).Until(w.From)
	c.found.Add(ok && ahead > time.Hour, driver.SeverityInfo, "clock", fmt.Sprintf("it is %v ahead of this machine's clock: the first client's wall clock was ahead", ahead.Round(time.Second)),
		"nothing: only the displayed times are wrong, and leases last as long as they should")
}

// checkRights tries a write that changes nothing, and reports whether the user may write.
func (c *checkup) checkRights(ctx context.Context) bool {
	key := c.entryKey("")
	isFalse := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "<", 0)}
	_, err := c.txn(ctx, isFalse, []clientv3.Op{clientv3.OpDelete(key, clientv3.WithPrefix())}, nil)
	if !isAny(err, rpctypes.ErrPermissionDenied) {
		return true
	}
	hint, _ := advice(err)
	c.found.Add(true, driver.SeverityError, "rights", "the user cannot write all keys that begin with "+c.prefix+"//", hint)
	return false
}

// checkUsers examines whether the cluster requires the password of the URL. If the
// cluster has no users, etcd's client connects without the password. A cluster that
// refuses the request for its status requires passwords.
func (c *checkup) checkUsers(ctx context.Context) {
	if c.client.Username == "" {
		return
	}
	status, err := c.client.AuthStatus(ctx)
	c.found.Add(err == nil && !(*pb.AuthStatusResponse)(status).GetEnabled(), driver.SeverityWarning, "authentication",
		"the URL has a user and a password, but the cluster does not require them: every client that reaches it can take and release any lock",
		"etcdctl auth enable, or leave them out of the URL")
}

func (c *checkup) checkMembers(ctx context.Context) {
	endpoints := c.client.Endpoints()
	var versions []string
	for _, endpoint := range endpoints {
		brief, cancel := context.WithTimeout(ctx, closeTimeout)
		status, err := c.client.Status(brief, endpoint)
		cancel()
		name := hosts([]string{endpoint})
		c.found.Add(err != nil, driver.SeverityWarning, "member "+name, "it does not answer",
			"check the network, and that etcd runs there: the cluster needs a majority of its members")
		if err == nil {
			c.checkMember(name, (*pb.StatusResponse)(status))
			versions = append(versions, status.Version)
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	c.found.Add(len(versions) > 1, driver.SeverityInfo, "versions", "the members run "+strings.Join(versions, " and "), "end the upgrade that seems to be under way")
	c.found = append(c.found, engine.Version("etcd", strings.Join(versions, " and "))...)
	c.checkAlarms(ctx)
	c.checkCluster(ctx, len(endpoints))
}

// checkMember examines the status of one member.
func (c *checkup) checkMember(name string, m *pb.StatusResponse) {
	c.found.Add(m.GetIsLearner(), driver.SeverityWarning, "member "+name, "it is a learner, which refuses requests for locks",
		"promote it (etcdctl member promote), or name a voting member")
	size, quota := m.GetDbSize(), m.GetDbSizeQuota()
	c.found.Add(quota > 0 && size > quota/10*8, driver.SeverityWarning, "quota of "+name, fmt.Sprintf("its database has %d MB of %d MB: when it is full, no lease is granted or renewed", size>>20, quota>>20),
		"compact and defragment it, or raise --quota-backend-bytes")
}

func (c *checkup) checkAlarms(ctx context.Context) {
	alarms, err := c.client.AlarmList(ctx)
	if err != nil {
		return
	}
	for _, a := range alarms.Alarms {
		c.found.Add(true, driver.SeverityError, "alarm", fmt.Sprintf("%v is raised by member %x", a.GetAlarm(), a.GetMemberID()),
			"etcdctl alarm list; for NOSPACE compact, defragment, then etcdctl alarm disarm")
	}
}

// checkCluster examines the number of members, and whether there are old revisions that
// should have been compacted.
func (c *checkup) checkCluster(ctx context.Context, endpoints int) {
	if members, err := c.client.MemberList(ctx); err == nil {
		n := len(members.Members)
		c.found.Add(n == 1, driver.SeverityInfo, "members", "there is only one: while it is down, no lease is granted or renewed", "three members survive the loss of one")
		c.found.Add(n > endpoints, driver.SeverityInfo, "endpoints", fmt.Sprintf("the URL names %d of %d members", endpoints, n), "name all members, so that clients can connect while some are down")
	}
	const maxRevisions = 1 << 20
	if last := c.lastRevision.Load(); last > maxRevisions {
		_, err := c.client.Get(ctx, c.clockKey(), clientv3.WithRev(last-maxRevisions))
		c.found.Add(err == nil, driver.SeverityWarning, "compaction", fmt.Sprintf("etcd keeps more than %d revisions: the database grows with each renewal until it is full", maxRevisions),
			"start the members with --auto-compaction-mode=periodic --auto-compaction-retention=1h")
	}
}
