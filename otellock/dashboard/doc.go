// Package dashboard tests otellock/grafana.json, a dashboard for Grafana, with real
// metrics: OpenTelemetry's exporter for Prometheus writes them, and Prometheus' own
// parser and engine read and query them. The package is a separate module, so that no
// user's program depends on these libraries. The test of package otellock runs it.
package dashboard
