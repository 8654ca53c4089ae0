package drivertest

// Room fixes the number of parallel subtests: a later change of -parallel has no effect.
func Room() { subtestSlots() }

// Thorough makes all subtests run, even after failures.
func (h Harness) Thorough() Harness {
	h.thorough = true
	return h
}
