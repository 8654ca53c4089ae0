package locktable

// The bounds of Apart.
var LongQueue, ShortQueue = rowBounds.long, rowBounds.short

// ApartWithin is Apart with other bounds: a queue of more than long waiters moves into
// rows, and one that has shrunk to short moves back.
func ApartWithin(long, short int, rows Rows, s Step, stored []byte, now Instant, f func(e *Entry)) (*Entry, Moves, error) {
	return bounds{long, short}.apart(rows, s, stored, now, func(e *Entry) error { f(e); return nil })
}

// The signal for watches.
const SignalChanged, MaxMarks = signalChanged, maxMarks
