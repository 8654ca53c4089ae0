package otellock

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
)

// Stale counts err in pawl.stale.writes if it matches pawl.ErrStale, records it in the
// span of ctx, and returns err unchanged:
//
//	return otellock.Stale(ctx, fence.CheckPostgres(...), nil)
//
// Stale uses MeterProvider and Names of the options. o may be nil, as with [New]. With
// Names the attribute "pawl.resource" is the resource of the fence, if package fence has
// refused the write.
func Stale(ctx context.Context, err error, o *Options) error {
	if !errors.Is(err, pawl.ErrStale) {
		return err
	}
	trace.SpanFromContext(ctx).RecordError(err)
	settings := o.withDefaults()
	counter, counterErr := staleWrites(settings.MeterProvider.Meter(scope))
	if counterErr != nil {
		otel.Handle(counterErr) // the caller needs err, not the error of the counter
		return err
	}
	var attributes []attribute.KeyValue
	if settings.Names {
		if refused, ok := errors.AsType[*fence.StaleError](err); ok {
			attributes = append(attributes, attribute.String("pawl.resource", refused.Resource))
		}
	}
	counter.Add(ctx, 1, metric.WithAttributes(attributes...))
	return err
}
