package fence_test

import "github.com/pawl-go/pawl/internal/basictest"

var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }
