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
	var failed failures
	permanent := true
	for i, v := range votes {
		switch {
		case v.err == nil, isRefusal(v.err), isNoSuchLease(v.err):
			continue
		case errors.Is(v.err, driver.ErrInvalid):
			return v.err // every node would refuse this request
		}
		e, ok := errors.AsType[*driver.Error](v.err)
		permanent = permanent && ok && e.Permanent
		node := fmt.Sprint("node ", i+1)
		if where := d.nodes[i].Properties().Location; where != "" && !ok { // a *driver.Error already contains it
			node += " (" + where + ")"
		}
		failed.errs, failed.lines = append(failed.errs, v.err), append(failed.lines, node+": "+bareText(v.err))
	}
	n := len(failed.errs)
	return &driver.Error{
		Backend: d.Properties().Backend, Op: op, Name: name, Permanent: permanent && n > 0,
		Hint: fmt.Sprintf("%d of %d nodes failed, %d are needed", n, len(d.nodes), d.majority),
		Err:  &failed,
	}
}

// failures are the errors of several nodes, in one line.
type failures struct {
	errs  []error
	lines []string // a description of each
}

func (f *failures) Unwrap() []error { return f.errs }

func (f *failures) Error() string { return strings.Join(f.lines, "; ") }

// bareText returns an error's text for use in another error, without a second "pawl: ".
func bareText(err error) string { return strings.TrimPrefix(err.Error(), "pawl: ") }
