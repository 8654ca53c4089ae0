// Package dashboard tests otellock/grafana.json, a dashboard for Grafana, with a real
// export: OpenTelemetry's exporter for Prometheus writes it, Prometheus' own parser reads
// it, and its own engine queries it. It is a module of its own so that no user's program
// depends on these; the test of package otellock runs it.
package dashboard
