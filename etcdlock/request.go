package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
)

// txn runs a transaction on a member that knows a leader, and examines its header. A
// member that knows no leader, or is a learner, refuses the transaction; then txn tries
// another member.
func (s *store) txn(ctx context.Context, conditions []clientv3.Cmp, then, otherwise []clientv3.Op) (r *clientv3.TxnResponse, err error) {
	for try := range 4 {
		if try > 0 {
			if ended := backoff.Wait(ctx, 20*time.Millisecond<<try); ended != nil {
				return nil, fmt.Errorf("%w (%w)", ended, err)
			}
		}
		last, sent := s.lastRevision.Load(), time.Now()
		r, err = s.client.Txn(clientv3.WithRequireLeader(ctx)).If(conditions...).Then(then...).Else(otherwise...).Commit()
		if err == nil {
			s.clock.RecordRoundTrip(time.Since(sent))
			return r, s.checkHeader(r.Header, last)
		}
		if !isAny(err, rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrGRPCNotSupportedForLearner) {
			break
		}
	}
	return nil, err
}

// checkHeader examines the header of an answer. known is the highest revision that the
// client knew when it sent the request. If the answer's revision is lower, a snapshot was
// restored. Revisions then repeat, so checkHeader drops the known values.
func (s *store) checkHeader(h *pb.ResponseHeader, known int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	isOtherCluster := s.cluster != 0 && h.GetClusterId() != s.cluster
	if isOtherCluster && slices.Contains(s.formerClusters, h.GetClusterId()) {
		return &engine.ConfigError{
			Problem: fmt.Sprintf("the members answer for two clusters, %x and %x", s.cluster, h.GetClusterId()),
			Hint:    "name only members of one cluster",
		}
	}
	if isOtherCluster || h.GetRevision() < known {
		s.formerClusters = append(s.formerClusters, s.cluster)
		if !isOtherCluster {
			s.formerClusters = nil
		}
		s.epoch++
		s.lastRevision.Store(0)
		s.cluster = h.GetClusterId()
		s.clock.Invalidate()
		return errors.New("the data are older than before: a snapshot was restored, or this is another cluster")
	}
	s.cluster = h.GetClusterId()
	s.lastRevision.Store(max(s.lastRevision.Load(), h.GetRevision()))
	return nil
}
