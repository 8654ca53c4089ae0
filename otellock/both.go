package otellock

import "github.com/pawl-go/pawl"

// both tells two observers, the first first.
func both(a, b *pawl.Observer) *pawl.Observer {
	if b == nil {
		return a
	}
	return &pawl.Observer{
		Queued: chain(a.Queued, b.Queued), Refused: chain(a.Refused, b.Refused), Acquired: chain(a.Acquired, b.Acquired),
		Released: chain(a.Released, b.Released), Lost: chain(a.Lost, b.Lost), Failed: chain(a.Failed, b.Failed),
	}
}

func chain[E any](a, b func(E)) func(E) {
	if b == nil {
		return a
	}
	return func(e E) {
		a(e)
		b(e)
	}
}
