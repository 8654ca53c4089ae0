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
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/pause"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser: the members, their number, versions and alarms,
// how full their databases are, whether anybody compacts them, the user and its rights,
// each entry, and the clock that the clients keep.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
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

// readClockInTime reads the clock, and asks again while there may be an election.
func (s *store) readClockInTime(ctx context.Context) (err error) {
	for began := time.Now(); ; {
		brief, cancel := context.WithTimeout(ctx, goodbye/2) // for one may be asked that is gone
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
		if pause.For(ctx, watchPause) != nil {
			return err
		}
	}
}

// diagnoseClock: the clock begins with the time of day, and is behind it by as long as no
// client was open since. An hour ahead, fences are.
func (s *store) diagnoseClock() []driver.Finding {
	w, ok := s.clock.window(time.Now())
	if ahead := locktable.At(time.Now()).Until(w.From); ok && ahead > time.Hour {
		return engine.Found(driver.SeverityInfo, "clock", fmt.Sprintf("it is %v ahead of this machine's: whoever made it had another time of day", ahead.Round(time.Second)),
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

// diagnoseUsers looks at whether the password of the URL keeps anybody out: the client of
// etcd goes on without it where the cluster has no users.
func (s *store) diagnoseUsers(ctx context.Context) []driver.Finding {
	if s.client.Username == "" {
		return nil
	}
	status, err := s.client.AuthStatus(ctx)
	if err != nil || (*pb.AuthStatusResponse)(status).GetEnabled() {
		return nil // who may not ask is asked for a password
	}
	return engine.Found(driver.SeverityWarning, "authentication", "a user and a password are given, and the cluster asks nobody for them: whoever reaches it can take and release any lock",
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
	found = append(found, s.diagnoseAlarms(ctx)...)
	return append(found, s.diagnoseCluster(ctx, len(endpoints))...)
}

// diagnoseMember is what one member says of itself.
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

// diagnoseCluster looks at the number of members, and whether old revisions are there
// still that somebody should have compacted.
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
