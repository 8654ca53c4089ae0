package optimistic

import "github.com/pawl-go/pawl/locktable"

// Watch implements locktable.Watchable, if the store does.
func (t *Table) Watch(name string, f func()) (stop func()) {
	if s, ok := t.store.(locktable.Watchable); ok {
		return s.Watch(name, f)
	}
	return func() {}
}
