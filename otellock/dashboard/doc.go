// Package dashboard tests otellock/grafana.json, a dashboard for Grafana, with a real
// export: OpenTelemetry's exporter for Prometheus writes it, and Prometheus' own parser
// and engine read and query it. The package is a module of its own so that no user's
// program depends on these libraries; the test of package otellock runs it.
package dashboard
