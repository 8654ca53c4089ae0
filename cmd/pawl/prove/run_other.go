//go:build !unix

package prove

import (
	"context"
	"errors"
)

// Run needs signals that stop and continue processes, which this system lacks.
func Run(context.Context, Options) error { return errors.ErrUnsupported }
