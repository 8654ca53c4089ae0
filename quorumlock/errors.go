package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// failuresErr returns the error of an operation without a majority, with the failures of
// the nodes.
func failuresErr[T any](ctx context.Context, d *quorum, op driver.Op, name string, votes []vote[T]) error {
	if d.isClosed() {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var failures causes
	failed, permanent := 0, true
	for i, v := range votes {
		switch {
		case v.err == nil, isRefusal(v.err), isNoSuchLease(v.err):
			continue
		case errors.Is(v.err, driver.ErrInvalid):
			return v.err // every node would refuse this request
		}
		failed++
		e, ok := errors.AsType[*driver.Error](v.err)
		permanent = permanent && ok && e.Permanent
		said := &cause{node: i + 1, err: v.err}
		if !ok { // a *driver.Error already contains Where
			said.where = d.nodes[i].Properties().Where
		}
		failures = append(failures, said)
	}
	return &driver.Error{
		Backend: d.Properties().Backend, Op: op, Name: name, Permanent: permanent && failed > 0,
		Hint: fmt.Sprintf("%d of %d nodes failed, %d are needed", failed, len(d.nodes), d.majority),
		Err:  failures,
	}
}

// causes are the errors of several nodes, in one line.
type causes []error

func (c causes) Unwrap() []error { return c }

func (c causes) Error() string {
	var all []string
	for _, err := range c {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

type cause struct {
	node  int
	where string // Properties.Where of the node; "" if err contains it already, or the node has none
	err   error
}

func (c *cause) Unwrap() error { return c.err }

func (c *cause) Error() string {
	if c.where != "" {
		return fmt.Sprintf("node %d (%s): %s", c.node, c.where, bare(c.err))
	}
	return fmt.Sprintf("node %d: %s", c.node, bare(c.err))
}

// bare returns an error's text for use inside another error, without a second "pawl: ".
func bare(err error) string { return strings.TrimPrefix(err.Error(), "pawl: ") }
