package pawl

import "fmt"

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
