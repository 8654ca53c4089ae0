package main

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "0.5": 500 * time.Millisecond, ".5": 500 * time.Millisecond, "5.": 5 * time.Second,
		"1.1": 1100 * time.Millisecond, "0.3": 300 * time.Millisecond, "007": 7 * time.Second,
		"0.0000000001": 1, // not "no wait"
		"1m30s":        90 * time.Second, "250ms": 250 * time.Millisecond, "1h": time.Hour,
	} {
		if got, err := parseSeconds(text); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "1.2.3", "-1", "-1s", "--1", "-0.5", "1e3", "inf", "nan", "0x10", "1_000", "five", "5 s", " 5", "99999999999", "9999999h",
	} {
		if got, err := parseSeconds(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
