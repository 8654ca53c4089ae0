package main

import (
	"math"
	"slices"
	"time"
)

// median returns the median, or the upper of the two middle values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	return s[len(s)/2]
}

// jainIndex returns Jain's fairness index: 1 if all counts are equal, 1/n if one has all.
func jainIndex(counts []int) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(counts)) * squares)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
