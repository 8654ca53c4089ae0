package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// The prefix stands once, however many errors are wrapped in one another.
func TestAnErrorSaysPawlOnce(t *testing.T) {
	down := &driver.Error{Backend: "quorum", Op: "renew", Err: &driver.Error{Backend: "redis", Op: "renew", Err: errNet}}
	lost := &pawl.LostError{Name: "x", Fence: 17, Reason: pawl.ReasonUnreachable, Err: down}
	if got := lost.Error(); got != `pawl: lost "x" (fence 17): backend unreachable: quorum: renew: redis: renew: network down` {
		t.Errorf("it says %s", got)
	}
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		defer f.down()()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err := c.Mutex("x").Lock(ctx)
		isError(t, err, context.DeadlineExceeded)
		if got := err.Error(); strings.Count(got, "pawl: ") != 1 || !strings.Contains(got, "network down") {
			t.Errorf("it says %s", got)
		}
	})
}

func TestCloseErrorIsASentence(t *testing.T) {
	err := &pawl.CloseError{Unreleased: 2, Err: errors.New("pawl: no answer")}
	if got := err.Error(); got != "pawl: closed, but 2 locks were not released and will expire: no answer" {
		t.Error(got)
	}
}
