package locktable

// The bounds of WithRows.
var LongQueue, ShortQueue = rowBounds.long, rowBounds.short

// WithBounds is WithRows with other bounds: a queue of more than long waiters moves into
// rows, and a queue that has shrunk to short moves back.
func WithBounds(long, short int, rows Rows, s Step, stored []byte, now Instant, f func(e *Entry)) (*Entry, QueueChanges, error) {
	return bounds{long, short}.withRows(rows, s, stored, now, func(e *Entry) error { f(e); return nil })
}

// The signal for watches.
const SignalChanged, MaxMarks = signalChanged, maxMarks
