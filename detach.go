package pawl

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/internal/trust"
)

func init() {
	access.LeaseOf = func(handle string) (stored string, fence uint64) {
		h, _ := Handle(handle).parse()
		return h.Name, h.Fence
	}
}

// A Handle is the text that [Lease.Detach] returns. [Client.Attach] takes it, in this
// process or in another, and continues the lease. A Handle consists of letters, digits, -
// and _, and has about 300 bytes, or more with a long name or address. It is a secret: a
// program that has it can release the lease. So fmt, slog, JSON and XML hide it, with two
// exceptions: JSON shows it as the key of a map, and fmt shows it in an unexported field.
// string(h) is the text, for a file that only you can read; pawl.Handle(text) makes it a
// handle again. Its checksum lets Attach refuse a handle that was cut or altered.
type Handle string

const hiddenHandle = "[handle]"

// Format implements fmt.Formatter: no verb prints the secret.
func (Handle) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hiddenHandle) }

// MarshalText implements encoding.TextMarshaler: JSON, XML and logs do not show the
// secret. To send the handle to another process, encode string(h).
func (Handle) MarshalText() ([]byte, error) { return []byte(hiddenHandle), nil }

// handleContent is the content of a handle: everything that a process needs to go on with
// the lease.
type handleContent struct {
	Backend  string        `json:"b"`           // the short name of the backend
	Location string        `json:"p,omitempty"` // the backend's location, for errors
	Name     string        `json:"n"`
	Token    []byte        `json:"t"` // not a driver.Token, which never marshals
	Fence    uint64        `json:"f"`
	TTL      time.Duration `json:"l"`
	MinHold  time.Duration `json:"m,omitempty"`
	Delay    time.Duration `json:"d,omitempty"`
	Weight   int           `json:"w"`
	Limit    int           `json:"of"`
}

// locationOf returns the description of a backend, for a handle. It cuts the middle out
// of a long list of addresses, and keeps the database, the schema or the prefix at its
// end.
func locationOf(backend string) string {
	if len(backend) > 300 {
		backend = backend[:150] + "..." + backend[len(backend)-150:]
	}
	return strings.ToValidUTF8(backend, "")
}

// handlePrefix is the beginning of a handle, by which people and secret scanners
// recognize it.
const handlePrefix = "pawl1_"

// handleEncoding encodes the JSON of a handle and its checksum. The checksum is needed
// because one altered character could change the TTL or the name.
var handleEncoding = base64.RawURLEncoding.Strict()

func (h handleContent) handle() Handle {
	b, _ := json.Marshal(h) //nolint:errchkjson // no field of it can fail
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return Handle(handlePrefix + handleEncoding.EncodeToString(b))
}

func (given Handle) parse() (h handleContent, err error) {
	text := string(given)
	if text == hiddenHandle {
		return h, invalid("handle", "was hidden when it was printed or encoded", "the text of string(handle)")
	}
	bad := invalid("handle", "is malformed", "the whole handle that Detach returned")
	b, err := handleEncoding.DecodeString(strings.TrimPrefix(text, handlePrefix))
	if err != nil || !strings.HasPrefix(text, handlePrefix) || len(b) < crc32.Size || strings.ContainsAny(text, "\r\n") {
		return h, bad // base64 skips line ends, but a handle contains none
	}
	b, sum := b[:len(b)-crc32.Size], binary.BigEndian.Uint32(b[len(b)-crc32.Size:])
	if sum != crc32.ChecksumIEEE(b) || json.Unmarshal(b, &h) != nil || len(h.Token) != len(driver.Token{}) || driver.Token(h.Token).IsZero() || h.Fence == 0 {
		return h, bad // the text is not shown, because it may be a secret of another program
	}
	return h, nil
}

// Detach ends the lease in this process and leaves the name held, for [Client.Attach] in
// another process or, after a restart, in this one. Detach renews the lease once, for its
// TTL, and Attach must follow within that time. Afterwards Err returns ErrDetached.
//
// The handle is a secret. Do not pass it on a command line, which others can read.
//
// Detach first waits until unanswered requests of this process can no longer reach the
// backend. After an error the lease goes on as before. Detach returns the errors of
// [Lease.Confirm].
func (l *Lease) Detach(ctx context.Context) (Handle, error) {
	if err := l.Err(); err != nil {
		return "", err
	}
	h, c := l.h, l.h.c
	if err := c.checkOpen(ctx); err != nil {
		return "", err
	}
	if err := l.sleep(ctx, time.Until(c.releaseAgainAt(h.claim))); err != nil {
		return "", err
	}
	w, err := l.takeWriteTurn(ctx) // waits until no unanswered write of a value can arrive
	if err != nil {
		return "", err
	}
	defer w.endTurn()
	c.waitForRenewal(ctx, h) // so that no renewal reaches the backend afterwards
	if err := l.Confirm(ctx); err != nil {
		return "", err
	}
	if err := l.finish(ErrDetached); err != nil {
		return "", err
	}
	h.removeFromLists(time.Now())
	c.waitForRenewal(ctx, h) // wait also for a renewal that was sent while Confirm waited
	if c.observer != nil {
		l.reportRelease(ctx, ErrDetached)
	}
	cl := h.claim
	return handleContent{
		Backend: c.driver.Properties().Backend, Location: locationOf(c.backend), Name: cl.Name, Token: cl.Token[:], Fence: l.fence,
		TTL: cl.lockTTL, MinHold: cl.minHold, Delay: cl.LockDelay, Weight: cl.Weight, Limit: cl.Limit,
	}.handle(), nil
}

// Attach goes on with a lease that was detached, in this process or another, and renews
// it. The fence stays the same, because it is the same lease of the backend. Two callers
// that attach one handle both hold the lease, and the first Release ends it for both.
//
// The backend notifies only the client that locked. So the client that attached detects a
// loss at its next renewal, within a third of the TTL. After a Break with a shorter
// Delay, another client may get the name before that.
//
// WithGrace, WithMaxHold and WithHealth apply from now on. Attach refuses other options,
// because they were set at the grant. The error matches ErrLost if the lease is over; if
// the handle was made elsewhere, on another server for example, the error says so. It
// matches ErrInvalid for text that is no handle or a handle of another kind of backend.
// Otherwise it matches ErrUnavailable or ErrClosed, or is ctx's own error.
func (c *Client) Attach(ctx context.Context, handle Handle, options ...LockOption) (*Lease, error) {
	if !c.isMade() {
		return nil, errNotMade
	}
	h, err := handle.parse()
	if err != nil {
		return nil, err
	}
	name, inNamespace := strings.CutPrefix(h.Name, c.space)
	lock := c.lock(name, options)
	if lock.o.grantOption != "" {
		return nil, noEffectError(lock.o.grantOption, "a lease that is attached", "WithGrace, WithMaxHold and WithHealth")
	}
	if backend := c.driver.Properties().Backend; h.Backend != backend {
		return nil, invalid("handle", fmt.Sprintf("is of a lease on %.80q", h.Backend), "one of "+backend)
	}
	if err := c.checkUsable(ctx); err != nil {
		return nil, err
	}
	if !inNamespace {
		return nil, invalid("handle", fmt.Sprintf("is of %.310q", h.Name), "one of the namespace "+c.space)
	}
	lock.o.ttl, lock.o.minHold, lock.o.lockDelay = h.TTL, h.MinHold, h.Delay
	cl, err := lock.claim(ctx, h.Weight, h.Limit)
	if err != nil {
		return nil, err
	}
	cl.Token = driver.Token(h.Token)
	if !c.claims.enter() {
		return nil, ErrClosed
	}
	defer c.claims.leave()
	lease, err := c.attach(ctx, cl, h.Fence)
	if lost, ok := errors.AsType[*LostError](err); ok && lost.Reason == ReasonExpired {
		lost.Err = c.otherBackendErr(h)
	}
	return lease, err
}

// otherBackendErr returns an error with the backend of the handle, or nil if that is this
// backend, or is not known.
func (c *Client) otherBackendErr(h handleContent) error {
	here := locationOf(c.backend)
	if h.Location == "" || h.Location == here {
		return nil
	}
	return fmt.Errorf("the handle is of a lease on %.310q, and this is %q", h.Location, here)
}

// attach renews the lease, and makes a hold of it.
func (c *Client) attach(ctx context.Context, cl *claim, fence uint64) (*Lease, error) {
	began, sent := time.Now(), c.now()
	c.inboxes.Add(cl.Token, &cl.inbox) // before asking: signals may come before the reply
	held := false
	defer func() {
		if !held {
			c.inboxes.Remove(cl.Token, &cl.inbox)
		}
	}()
	attempt := c.settings.requestContext(ctx, &cl.request, cl.TTL, sent.Mono)
	defer attempt.Cancel()
	answers, err := c.driver.Renew(attempt, []driver.LeaseRef{{Name: cl.Name, Token: cl.Token, TTL: cl.TTL}})
	if err == nil && len(answers) == 1 {
		err = answers[0]
	}
	term := trust.NewTerm(sent, cl.TTL, cl.marginOf(cl.TTL))
	switch now := c.now(); {
	case errors.Is(err, driver.ErrNoSuchLease):
		lost := reportedLoss(sent.Mono, err)
		lost.Name, lost.Fence = cl.Name, fence
		return nil, &lost
	case err != nil && ctxErr(ctx) != nil:
		return nil, ctxErr(ctx)
	case err != nil:
		return nil, unavailable(c.backend, "renew", cl.Name, err)
	case !term.Fresh(now):
		return nil, unavailable(c.backend, "renew", cl.Name, errTooLate)
	}
	h := newHold(c.core, cl, sent, term, fence, 1)
	now := c.now()
	if !c.startRenewing(h, now) {
		return nil, ErrClosed // the lease stays held, and its handle stays valid
	}
	held = true
	lease := c.beginLease(nil, h, now)
	if c.observer != nil {
		lease.announce(time.Since(began))
	}
	return lease, nil
}
