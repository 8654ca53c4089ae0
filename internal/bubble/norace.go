//go:build !race

package bubble

// RaceDetector reports whether this program was built with -race.
const RaceDetector = false
