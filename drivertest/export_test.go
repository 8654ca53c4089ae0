package drivertest

// Room sets how many subtests run side by side; a later change of -parallel has no
// effect.
func Room() { room() }

// Thorough has all subtests run, though others have failed.
func (h Harness) Thorough() Harness {
	h.thorough = true
	return h
}
