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

// Diagnose implements driver.Diagnoser. It examines the members, their number, versions
// and alarms, how full their databases are, whether old revisions are compacted, the user
// and its rights, each entry, and the clock that the clients keep.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	s := d.store
	if s.life.Err() != nil {
		return nil, driver.ErrClosed
	}
	if err := s.readClockInTime(ctx); err != nil {
		if e, ok := errors.AsType[*driver.Error](err); ok && e.Permanent {
			return engine.Found(driver.SeverityError, "clock", e.Err.Error(), e.Hint), nil
		}
		return nil, s.failed(ctx, err)
	}
	found := s.diagnoseClock()
	if rights := s.diagnoseRights(ctx); len(rights) > 0 {
		found = append(found, rights...)
	} else {
		found = append(found, locktable.Damaged(ctx, d)...)
	}
	found = append(found, s.diagnoseUsers(ctx)...)
	found = append(found, s.diagnoseMembers(ctx)...)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	engine.SortFindings(found)
	return found, nil
}

// readClockInTime reads the clock. It tries again while there may be an election.
func (s *store) readClockInTime(ctx context.Context) (err error) {
	for began := time.Now(); ; {
		brief, cancel := context.WithTimeout(ctx, goodbye/2) // the client may ask a member that is gone
		err = s.readClock(brief)
		cancel()
		if err == nil || time.Since(began) > askTimeout {
			return err
		}
		if _, permanent := advice(err); permanent || isAny(err, rpctypes.ErrGRPCNotSupportedForLearner) {
			return err
		}
		if e, ok := errors.AsType[*driver.Error](err); ok && e.Permanent {
			return err
		}
		if backoff.Wait(ctx, watchPause) != nil {
			return err
		}
	}
}

// diagnoseClock compares the clock that the clients keep with this machine's clock. The
// clients' clock begins with the time of day, and falls behind while no client is open.
// If the clients' clock is an hour ahead, so are the fences.
func (s *store) diagnoseClock() []driver.Finding {
	w, ok := s.clock.window(time.Now())
	if ahead := locktable.At(time.Now()).Until(w.From); ok && ahead > time.Hour {
		return engine.Found(driver.SeverityInfo, "clock", fmt.Sprintf("it is %v ahead of this machine's: the client that made it had another time of day", ahead.Round(time.Second)),
			"nothing: leases are not longer or shorter for it, only the times that are shown are wrong")
	}
	return nil
}

// diagnoseRights tries a write that changes nothing.
func (s *store) diagnoseRights(ctx context.Context) []driver.Finding {
	key := s.entryKey("")
	never := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "<", 0)}
	_, err := s.txn(ctx, never, []clientv3.Op{clientv3.OpDelete(key, clientv3.WithPrefix())}, nil)
	if !isAny(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	hint, _ := advice(err)
	return engine.Found(driver.SeverityError, "rights", "the user cannot write all keys that begin with "+s.prefix+"//",
		hint)
}

// diagnoseUsers examines whether the cluster requires the password of the URL. If the
// cluster has no users, the client of etcd goes on without the password.
func (s *store) diagnoseUsers(ctx context.Context) []driver.Finding {
	if s.client.Username == "" {
		return nil
	}
	status, err := s.client.AuthStatus(ctx)
	if err != nil || (*pb.AuthStatusResponse)(status).GetEnabled() {
		return nil // a cluster that refuses this request does require passwords
	}
	return engine.Found(driver.SeverityWarning, "authentication", "a user and a password are given, and the cluster does not ask for them: every client that reaches it can take and release any lock",
		"etcdctl auth enable, or leave them out of the URL")
}

func (s *store) diagnoseMembers(ctx context.Context) (found []driver.Finding) {
	endpoints := s.client.Endpoints()
	var versions []string
	down := 0
	for _, endpoint := range endpoints {
		brief, cancel := context.WithTimeout(ctx, goodbye)
		status, err := s.client.Status(brief, endpoint)
		cancel()
		where := hosts([]string{endpoint})
		if err != nil {
			down++
			found = append(found, engine.Found(driver.SeverityWarning, "member "+where, "it does not answer",
				"check that etcd runs there, and the network: the cluster survives no more than a minority that is down")...)
			continue
		}
		found = append(found, diagnoseMember(where, status)...)
		versions = append(versions, status.Version)
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) > 1 {
		found = append(found, engine.Found(driver.SeverityInfo, "versions", "the members run "+strings.Join(versions, " and "),
			"end the upgrade that seems to be under way")...)
	}
	if len(versions) > 0 {
		found = append(found, engine.Version("etcd", strings.Join(versions, " and "))...)
	}
	found = append(found, s.diagnoseAlarms(ctx)...)
	return append(found, s.diagnoseCluster(ctx, len(endpoints))...)
}

// diagnoseMember examines the status of one member.
func diagnoseMember(where string, status *clientv3.StatusResponse) (found []driver.Finding) {
	m := (*pb.StatusResponse)(status)
	if m.GetIsLearner() {
		found = append(found, engine.Found(driver.SeverityWarning, "member "+where, "it is a learner, and answers no requests of ours",
			"promote it (etcdctl member promote), or name a voting member")...)
	}
	if quota := m.GetDbSizeQuota(); quota > 0 && m.GetDbSize() > quota/10*8 {
		found = append(found, engine.Found(driver.SeverityWarning, "quota of "+where, fmt.Sprintf("its database has %d MB of %d MB: when it is full, nothing is granted or renewed", m.GetDbSize()>>20, quota>>20),
			"compact and defragment it, or raise --quota-backend-bytes")...)
	}
	return found
}

func (s *store) diagnoseAlarms(ctx context.Context) (found []driver.Finding) {
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return nil
	}
	for _, a := range alarms.Alarms {
		found = append(found, engine.Found(driver.SeverityError, "alarm", fmt.Sprintf("%v is raised by member %x", a.GetAlarm(), a.GetMemberID()),
			"etcdctl alarm list; for NOSPACE compact, defragment, then etcdctl alarm disarm")...)
	}
	return found
}

// diagnoseCluster examines the number of members, and whether there are old revisions
// that should have been compacted.
func (s *store) diagnoseCluster(ctx context.Context, named int) (found []driver.Finding) {
	members, err := s.client.MemberList(ctx)
	if err == nil && len(members.Members) == 1 {
		found = append(found, engine.Found(driver.SeverityInfo, "members", "there is one: nothing is granted or renewed while it is down",
			"three members survive the loss of one")...)
	}
	if err == nil && len(members.Members) > named {
		found = append(found, engine.Found(driver.SeverityInfo, "endpoints", fmt.Sprintf("the URL names %d of %d members", named, len(members.Members)),
			"name all, so that it does not matter which of them are down")...)
	}
	const old = 1 << 20
	if seen := s.seen.Load(); seen > old {
		_, err := s.client.Get(ctx, s.clockKey(), clientv3.WithRev(seen-old))
		if err == nil {
			found = append(found, engine.Found(driver.SeverityWarning, "compaction", fmt.Sprintf("more than %d revisions are kept: the database grows with each renewal until it is full", old),
				"start the members with --auto-compaction-mode=periodic --auto-compaction-retention=1h")...)
		}
	}
	return found
}
