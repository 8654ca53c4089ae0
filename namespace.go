package pawl

import (
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Namespace returns a client of the same backend that sees only the names of one
// namespace, for example of one tenant or environment. Its methods take and return names
// without the namespace; List, Watch, Inspect and Break reach no name outside it. Two
// namespaces never share a name, whatever their prefixes and names. Namespace costs
// nothing, and its client needs no Close: it shares the connection, the renewals and the
// options of c, and ends with c. Its own Close and Shutdown return ErrInvalid. A program
// with one namespace can use Options.Namespace.
//
// prefix is 1 to 255 bytes of UTF-8 without control characters; for a bad prefix every
// method returns ErrInvalid. A namespace may have inner namespaces; a client does not see
// the names inside those.
//
// The backend stores "@", the prefix, ":" and the name: "@acme:report", and in an inner
// namespace "@eu/acme:report"; %, / and : of a prefix become %25, %2F and %3A. That
// stored name has 255 bytes at most. [Client.StoredName] returns it. Errors, events and
// logs show it, because it tells two tenants apart. A client without a namespace lists
// and reaches all names as they are stored, so its own names should not begin with "@".
func (c *Client) Namespace(prefix string) *Client {
	if !c.isMade() {
		return &Client{}
	}
	inner := &Client{core: c.core, isNamespace: true, space: spaceOf(c.space, prefix), namespaceErr: c.namespaceErr}
	if inner.namespaceErr == nil {
		inner.namespaceErr = validateNamespace(prefix)
	}
	return inner
}

// StoredName returns a name with the client's namespace, as the backend, errors, events
// and logs have it. Without a namespace the stored name is the name itself.
func (c *Client) StoredName(name string) string {
	if c == nil {
		return name
	}
	return c.space + name
}

// stored returns StoredName, or an error for a bad name or namespace.
func (c *Client) stored(name string) (string, error) {
	if c.namespaceErr != nil {
		return "", c.namespaceErr
	}
	if err := driver.ValidateName(name); err != nil {
		return "", err
	}
	return c.space + name, checkNameSize(c.space, name)
}

// shown returns the entry with its name as users see it: without the namespace.
func (c *Client) shown(e Entry) Entry {
	e.Name = strings.TrimPrefix(e.Name, c.space)
	return e
}
