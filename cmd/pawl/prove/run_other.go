//go:build !unix

package prove

import (
	"context"
	"errors"
)

// Run cannot stop and continue processes here.
func Run(context.Context, Options) error { return errors.ErrUnsupported }
