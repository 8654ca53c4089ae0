// Package observed contains the benchmarks of the cost of an observer. They are not in
// package otellock, so that the go.sum there does not need Redis.
package observed
