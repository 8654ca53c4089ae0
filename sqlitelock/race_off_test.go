//go:build !race

package sqlitelock

const raceDetector = false
