package pawl

// Observers joins observers: each event is told to all of them, in their order. Those
// that are nil are left out. One that panics keeps the event from those behind it.
func Observers(all ...*Observer) *Observer {
	joined := &Observer{}
	for _, o := range all {
		if o == nil {
			continue
		}
		joined.Queued = join(joined.Queued, o.Queued)
		joined.Refused = join(joined.Refused, o.Refused)
		joined.Acquired = join(joined.Acquired, o.Acquired)
		joined.Released = join(joined.Released, o.Released)
		joined.Lost = join(joined.Lost, o.Lost)
		joined.Failed = join(joined.Failed, o.Failed)
	}
	return joined
}

// join leaves out what is nil: the client does less where nobody is told.
func join[E any](a, b func(E)) func(E) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(e E) {
		a(e)
		b(e)
	}
}
