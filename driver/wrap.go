package driver

// As finds what a driver can do beside [Driver]: an ability such as [Signaler], [Lister]
// or [AllAcquirer]. It is that of d itself, or, if d has none and has a method
// Unwrap() Driver, of the driver that it wraps. Whoever uses a driver looks for abilities
// with it.
//
// So a driver around another one, for traces, metrics or faults, embeds a Driver and has
// Unwrap: then pushing, lists and steps of several names go on working, and do not pass
// through it. What it wants to see of them it declares itself. If it may not let them
// pass, it has no Unwrap.
func As[Ability any](d Driver) (can Ability, ok bool) {
	for d != nil {
		if can, ok = d.(Ability); ok {
			return can, true
		}
		w, wraps := d.(interface{ Unwrap() Driver })
		if !wraps {
			break
		}
		d = w.Unwrap()
	}
	return can, false
}
