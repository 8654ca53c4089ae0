package drivertest

// Room settles how many subtests run side by side, whatever -parallel is set to later.
func Room() { room() }

// Thorough has all subtests run, though others have failed.
func (h Harness) Thorough() Harness {
	h.thorough = true
	return h
}
