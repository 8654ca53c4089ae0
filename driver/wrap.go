package driver

// As finds an ability of a driver beyond [Driver], such as [Signaler], [Lister] or
// [AllAcquirer]: in d itself, or, if d lacks it and has a method Unwrap() Driver, in the
// driver that d wraps. All users of a driver look for abilities with it.
//
// So a driver around another one, for traces, metrics or faults, embeds a Driver and has
// Unwrap: then signals, lists and steps of several names keep working, but bypass the
// wrapper. To get the calls of an ability, the wrapper implements that ability. A wrapper
// without Unwrap cannot be bypassed.
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
