package drivertest

// Thorough has all subtests run, though others have failed.
func (h Harness) Thorough() Harness {
	h.thorough = true
	return h
}
