package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

// A task is the task of one `pawl once`. The value of the name is the key of the last
// task. A task is done if that key is equal to its field above, or greater. The grant
// compares the two in one step of the database.
type task struct{ key, above string }

// keyed returns a task with the user's own key.
func keyed(key string) task { return task{key, key} }

// startedAt returns the task of a pawl with --every that has started at start. It is done
// if the last start was less than half a period before, because both belong to one tick.
func startedAt(start time.Time, every time.Duration) task {
	return task{pawl.TimeKey(start), pawl.TimeKey(start.Add(-every / 2))}
}

// clockSuffix is the end of the name of the lock that serverTime takes.
const clockSuffix = "#clock"

// serverTime converts a time of this host's clock, which may be wrong, to the server's.
// It takes a lock that all hosts share, and reads the time of the grant from the entry.
func serverTime(ctx context.Context, c *pawl.Client, name string, at time.Time) (time.Time, error) {
	name += clockSuffix
	sent := time.Now()
	lease, err := c.RWMutex(name).RLock(ctx)
	if err != nil {
		return time.Time{}, err
	}
	granted := sent.Add(time.Since(sent) / 2)
	defer lease.Release(ctx) //nolint:errcheck // it expires, and excludes no other host
	e, err := c.Inspect(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	for _, h := range e.Holders {
		if h.Fence == lease.Fence() {
			return h.Since.Add(-granted.Sub(at)), nil
		}
	}
	return time.Time{}, fmt.Errorf("the time of the server is not known: %q (fence %d) was lost at once: %w", name, lease.Fence(), pawl.ErrUnavailable)
}

// fits returns an error if the task's key has another form than the stored one. Keys of
// different forms would be greater or smaller by chance, so tasks would be skipped
// without a message, maybe for ever.
func (t task) fits(name string, stored []byte) error {
	if stored == nil || formOf(string(stored)) == formOf(t.key) {
		return nil
	}
	return &otherFormError{name, t.key, string(stored)}
}

// formOf returns the form of a key: its length, its punctuation, and the positions of its
// digits.
func formOf(key string) string {
	var form strings.Builder
	word := []rune{} // a run of letters and digits
	end := func() {
		kind := '0'
		for _, r := range word {
			if !unicode.IsDigit(r) {
				kind = 'a'
			}
		}
		form.WriteString(strings.Repeat(string(kind), len(word)))
		word = word[:0]
	}
	for _, r := range key {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			word = append(word, r)
			continue
		}
		end()
		form.WriteRune(r)
	}
	end()
	return form.String()
}

// otherFormError is the error for a key of another form, as wrong usage.
type otherFormError struct{ name, key, stored string }

func (e *otherFormError) Error() string {
	return fmt.Sprintf("the last key of %q is %s, and %s has another form, so they cannot be compared; give keys of a new form a new NAME", e.name, words.Plain(e.stored), words.Plain(e.key))
}

func (*otherFormError) Is(target error) bool { return target == pawl.ErrInvalid }
