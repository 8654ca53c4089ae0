package driver

import "log/slog"

// LogValue implements slog.LogValuer: the owner on one line.
func (o Owner) LogValue() slog.Value { return slog.StringValue(o.String()) }

// LogValue implements slog.LogValuer: the fence, the owner, and how much longer it holds.
func (h Holder) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Uint64("fence", h.Fence), slog.Any("owner", h.Owner)}
	attrs = append(attrs, kindAttrs(h.Kind(), h.Permits)...)
	attrs = append(attrs, slog.Duration("left", round(h.ExpiresIn)))
	if h.Released {
		attrs = append(attrs, slog.Bool("released", true))
	}
	return slog.GroupValue(attrs...)
}

// LogValue implements slog.LogValuer: the owner, and how much longer the place lasts.
func (w Waiter) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Any("owner", w.Owner)}
	attrs = append(attrs, kindAttrs(w.Kind(), w.Permits)...)
	return slog.GroupValue(append(attrs, slog.Duration("left", round(w.ExpiresIn)))...)
}

// kindAttrs is empty for an exclusive claim, the usual kind.
func kindAttrs(kind Kind, permits int) []slog.Attr {
	switch kind {
	case KindExclusive:
	case KindShared:
		return []slog.Attr{slog.String("kind", string(kind))}
	case KindPermits:
		return []slog.Attr{slog.Int("permits", permits)}
	}
	return nil
}

// LogValue implements slog.LogValuer: the name, its last fence, how many leases hold it,
// how many claims wait, and the first of each.
func (e Entry) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("name", e.Name)}
	if e.Fence > 0 {
		attrs = append(attrs, slog.Uint64("fence", e.Fence))
	}
	attrs = append(attrs, slog.Int("holders", len(e.Holders)), slog.Int("waiters", len(e.Waiters)))
	if len(e.Holders) > 0 {
		attrs = append(attrs, slog.Any("holder", e.Holders[0]))
	}
	if len(e.Waiters) > 0 {
		attrs = append(attrs, slog.Any("next", e.Waiters[0]))
	}
	if e.ClosedFor > 0 {
		attrs = append(attrs, slog.Duration("closed", round(e.ClosedFor)))
	}
	return slog.GroupValue(attrs...)
}
