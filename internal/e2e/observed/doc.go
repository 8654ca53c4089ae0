// Package observed contains the benchmark of the cost of an observer on Redis. It is
// separate from package otellock, so that no go.sum has both OpenTelemetry and Redis
// because of it.
package observed
