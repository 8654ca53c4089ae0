// Package observed contains the benchmark of the cost of an observer on Redis. It is not
// in package otellock, so that the go.sum there does not need Redis.
package observed
