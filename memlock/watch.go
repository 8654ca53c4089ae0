package memlock

// Watch implements locktable.Watchable.
func (m *Memory) Watch(name string, f func()) (stop func()) { return m.watchers.Watch(name, f) }
