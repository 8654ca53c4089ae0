package screen

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/screentest"
	"github.com/pawl-go/pawl/internal/bubble"
)

// A paper is a terminal that may stop taking output.
type paper struct {
	*screentest.Terminal
	turn  chan struct{} // empty while it takes nothing
	taken int           // bytes
	fails error
}

func newPaper() *paper {
	p := &paper{Terminal: screentest.New(20, 2), turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

func (p *paper) stop() { <-p.turn }

func (p *paper) goOn() { p.turn <- struct{}{} }

func (p *paper) Write(b []byte) (int, error) {
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	if p.fails != nil {
		return 0, p.fails
	}
	p.taken += len(b)
	return p.Terminal.Write(b)
}

func (p *paper) wantText(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := strings.TrimSpace(p.Text()); got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

func withPen(t *testing.T, f func(t *testing.T, p *pen, out *paper)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		out := newPaper()
		f(t, newPen(out, 0), out)
	})
}

func TestThePenGivesTheScreenBackAndWritesNothingAfterIt(t *testing.T) {
	withPen(t, func(t *testing.T, p *pen, out *paper) {
		_, _ = out.Write([]byte("$ pawl top"))
		p.draw([]Line{Text("one", Bold)}, 20, 2)
		p.show()
		out.wantText(t, "one")
		if got := out.State(); got != "alternate screen, no cursor, paste is marked" {
			t.Errorf("the terminal has %q", got)
		}
		if !p.leave(time.Second) {
			t.Error("it has not left")
		}
		out.wantText(t, "$ pawl top")
		p.draw([]Line{Text("two", Bold)}, 20, 2)
		out.wantText(t, "$ pawl top")
		p.show()
		out.wantText(t, "two")
		if !p.end(time.Second) {
			t.Error("it has not ended")
		}
		p.draw([]Line{Text("three", 0)}, 20, 2)
		p.show()
		out.wantText(t, "$ pawl top")
		if got := out.State(); got != "" {
			t.Errorf("the terminal is left with %q", got)
		}
	})
}

// Over a connection that hangs a write does not end. No other goroutine waits for it, and
// when it ends the terminal shows the last frame.
func TestNobodyWaitsForATerminalThatTakesNothing(t *testing.T) {
	withPen(t, func(t *testing.T, p *pen, out *paper) {
		p.draw([]Line{Text("one", 0)}, 20, 2)
		p.show()
		out.wantText(t, "one")
		out.stop()
		for _, text := range []string{"two", "three", "four"} {
			p.draw([]Line{Text(text, 0)}, 20, 2)
		}
		began := time.Now()
		if p.leave(time.Second) || time.Since(began) != time.Second {
			t.Errorf("it left after %v", time.Since(began))
		}
		p.show()
		out.goOn()
		out.wantText(t, "four")
		out.stop()
		p.draw([]Line{Text("five", 0)}, 20, 2)
		if p.end(time.Second) {
			t.Error("it ended")
		}
		p.draw([]Line{Text("six", 0)}, 20, 2)
		out.goOn()
		out.wantText(t, "")
		if got := out.State(); got != "" {
			t.Errorf("the terminal is left with %q", got)
		}
	})
}

// A terminal that takes a little, and then nothing, is given back with the next bytes.
func TestNothingIsWrittenOfAFrameThatNobodyWaitsFor(t *testing.T) {
	withPen(t, func(t *testing.T, p *pen, out *paper) {
		p.show()
		out.wantText(t, "")
		out.stop()
		p.draw([]Line{Text(strings.Repeat("x", 9000), 0)}, 10000, 1)
		if p.end(time.Second) {
			t.Error("it ended")
		}
		before := out.taken
		out.goOn()
		synctest.Wait()
		if n := out.taken - before; n > room+len(leave) {
			t.Errorf("the terminal had to take %d bytes", n)
		}
		if got := out.State(); got != "" {
			t.Errorf("the terminal is left with %q", got)
		}
	})
}

func TestATerminalThatHasHungUp(t *testing.T) {
	withPen(t, func(t *testing.T, p *pen, out *paper) {
		out.stop()
		out.fails = errors.New("hung up")
		out.goOn()
		p.draw([]Line{Text("one", 0)}, 20, 2)
		p.show()
		synctest.Wait()
		if err := p.failure(); !errors.Is(err, out.fails) {
			t.Errorf("failed with %v", err)
		}
		if !p.leave(time.Second) || !p.end(time.Second) {
			t.Error("it has not ended")
		}
	})
}

func TestNoColor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out := newPaper()
		p := newPen(out, colors)
		p.draw([]Line{{{"bad", Bold | Red}, {"good", Green}}}, 20, 2)
		p.show()
		out.wantText(t, "badgood")
		if bad, good := out.Style("bad"), out.Style("good"); bad != "0;1" || good != "0" {
			t.Errorf("the styles are %q and %q", bad, good)
		}
		p.end(time.Second)
	})
}
