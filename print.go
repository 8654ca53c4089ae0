package pawl

import (
	"fmt"
	"log/slog"
	"time"
)

// Clients and leases hold tokens, in fields where fmt prints them whatever their type says of itself. So
// they print as their names, with every verb.

// Format implements fmt.Formatter.
func (c *Client) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "pawl client %s of %s", c.settings.ID, c.backend)
}

// Format implements fmt.Formatter.
func (l *Lease) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "lease of %q (fence %d)", l.Name(), l.fence)
}

// LogValue implements slog.LogValuer: the name, the fence, and how much longer the lease can
// be trusted if it is not renewed; or why it is over.
func (l *Lease) LogValue() slog.Value {
	if l.none() {
		return slog.GroupValue(slog.String("over", errNoLease.Error()))
	}
	attrs := []slog.Attr{slog.String("name", l.Name()), slog.Uint64("fence", l.fence)}
	if err := l.Err(); err != nil {
		return slog.GroupValue(append(attrs, slog.String("over", err.Error()))...)
	}
	return slog.GroupValue(append(attrs, slog.Duration("left", time.Until(l.Deadline()).Round(time.Millisecond)))...)
}
