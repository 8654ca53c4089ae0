package otellock

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
)

// Stale counts err in pawl.stale.writes if it matches pawl.ErrStale, says so in the span
// of ctx, and returns err: return otellock.Stale(ctx, fence.CheckPostgres(...)). It uses
// OpenTelemetry's global meter.
func Stale(ctx context.Context, err error) error {
	if !errors.Is(err, pawl.ErrStale) {
		return err
	}
	trace.SpanFromContext(ctx).RecordError(err)
	c, bad := otel.GetMeterProvider().Meter(scope).Int64Counter("pawl.stale.writes",
		metric.WithUnit("{write}"), metric.WithDescription("Writes that were refused, for their fence was stale."))
	if bad == nil {
		c.Add(ctx, 1)
	}
	return err
}
