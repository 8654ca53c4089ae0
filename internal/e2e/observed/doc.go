// Package observed has the benchmark of what an observer costs on Redis. It stands apart
// from package otellock so that nobody's go.sum has both OpenTelemetry and Redis for it.
package observed
