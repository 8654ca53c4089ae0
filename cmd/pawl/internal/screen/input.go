package screen

import (
	"io"
	"time"
)

// An Event is what happened to the terminal.
type Event struct {
	Key    Key  // the key that was pressed; "" with the other events
	Pasted bool // the key is a part of what was pasted: nobody has pressed it

	Redraw bool  // the size has changed, or others have had the terminal
	Gone   error // nothing can be read or written any more: the terminal has hung up
}

// An escape sequence comes at once, or in parts that follow each other quickly, even over
// a network. An ESC that nothing follows for so long is the key.
const escapePause = 50 * time.Millisecond

// read reads what the terminal sends until it is gone or done is closed. A read that has
// begun does not end before something comes.
func read(in io.Reader, sent chan<- []byte, done <-chan struct{}) error {
	for {
		buf := make([]byte, 1024)
		n, err := in.Read(buf)
		if n > 0 {
			select {
			case sent <- buf[:n]:
			case <-done:
				return nil
			}
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.EOF
		}
	}
}

// A typist makes keys of what was sent.
type typist struct {
	sent    []byte // that is no key yet
	pasting bool
}

// keys takes what has come, and returns the keys that it makes. last says that nothing
// has come for a while.
func (t *typist) keys(more []byte, last bool) (events []Event) {
	t.sent = append(t.sent, more...)
	for len(t.sent) > 0 {
		k, n := decode(t.sent, last)
		if n == 0 {
			break
		}
		switch sequence := string(t.sent[:n]); {
		case sequence == pasteBegin:
			t.pasting = true
		case sequence == pasteEnd:
			t.pasting = false
		case k != "":
			events = append(events, Event{Key: k, Pasted: t.pasting})
		}
		t.sent = t.sent[n:]
	}
	return events
}

// waits reports whether what was sent may go on.
func (t *typist) waits() bool { return len(t.sent) > 0 }
