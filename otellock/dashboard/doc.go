// Package dashboard tries otellock/grafana.json, a dashboard for Grafana, against what is
// really exported: by OpenTelemetry's exporter for Prometheus, read by Prometheus' own
// parser, and asked by its own engine. It is a module of its own so that these are
// nobody's dependency; the test of package otellock runs it.
package dashboard
