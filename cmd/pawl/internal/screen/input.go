package screen

import (
	"io"
	"time"
)

// An Event is one thing that happened to the terminal.
type Event struct {
	Key    Key  // the key that was pressed; "" with the other events
	Pasted bool // the key is a part of pasted text, and was not pressed

	Redraw bool  // the size has changed, or another program had the terminal
	Gone   error // the terminal has hung up: reading or writing has failed
}

// escapePause is the time to wait for the rest of a sequence after an ESC. All of it
// comes quickly, even over a network. Without a rest, the ESC is the Esc key.
const escapePause = 50 * time.Millisecond

// read reads from the terminal until it is gone or done is closed. A read that has begun
// ends only when input comes.
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

// A typist turns input into keys.
type typist struct {
	sent    []byte // input that is no key yet
	pasting bool
}

// keys takes input, and returns the keys in it. last means that no input has come for a
// while.
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

// waits reports whether the input may be incomplete.
func (t *typist) waits() bool { return len(t.sent) > 0 }
