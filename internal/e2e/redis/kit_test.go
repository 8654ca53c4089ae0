package redis_test

import (
	"context"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	_ "github.com/pawl-go/pawl/redislock"
)

var ctx = context.Background()

// Short names for the helpers of all tests.
var (
	isRefused   = servertest.Waits
	noError     = basictest.NoError
	skipIfShort = basictest.SkipIfShort
	mutex       = servertest.Mutex
	queued      = servertest.Queued
	reader      = servertest.Reader
	lease       = servertest.Lease
	gets        = servertest.Gets
	renews      = servertest.Renews
	releases    = servertest.Releases

	openDriver  = servertest.OpenDriver[*redisscript.Driver]
	unavailable = redistest.WantServerError
)

// asDriver converts the driver of New or Open to its concrete type.
var asDriver = servertest.As[*redisscript.Driver]
