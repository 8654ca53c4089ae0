package natslock

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/locktable/swap"
)

// checkSize returns an error for a claim that joins an entry without room for it. A
// message has the new value and the previous value.
func (s *store) checkSize(one *swap.Swap) error {
	limit, err := s.nc.MaxPayload(), nats.ErrMaxPayload
	if c := s.bucket.config.Load(); c != nil && c.MaxMsgSize > 0 && int64(c.MaxMsgSize) < limit {
		limit, err = int64(c.MaxMsgSize), errTooBig
	}
	if one.ReserveBytes == 0 || limit <= 0 || int64(2*(len(one.Value)+one.ReserveBytes)) <= limit {
		return nil
	}
	return s.failed(err)
}

// errTooBig is the server's error for a message that is too big for the bucket.
var errTooBig = &jetstream.APIError{ErrorCode: codeTooBig, Description: "message size exceeds maximum allowed"}
