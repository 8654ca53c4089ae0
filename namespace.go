package pawl

import (
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Namespace returns a client of the same backend that sees only the names of a namespace:
// those of a tenant, or of an environment. All its methods take and return names as they
// are inside; List, Watch, Inspect and Break reach nothing outside. Two namespaces never
// share a name, whatever prefixes and names they have. It costs nothing to make, and
// needs no Close: it uses the connection, the renewals and the options of this client,
// and ends with it. Its own Close and Shutdown are refused with ErrInvalid. For a program
// with one namespace there is Options.Namespace.
//
// prefix is 1 to 255 bytes of UTF-8 without control characters; for a bad one every
// method returns ErrInvalid. A namespace of a namespace is another one, inside: a client
// sees the names of its own only, not those of the namespaces in it.
//
// The backend has "@", the prefix, ":" and the name, such as "@acme:report", and for a
// namespace in another "@eu/acme:report"; %, / and : of a prefix stand there as %25, %2F
// and %3A. Together that is 255 bytes at most. [Client.StoredName] makes it. Errors,
// events and logs have it, for it tells two tenants apart. A client without a namespace
// lists all names as they are stored, and reaches each by that: so it should keep its own
// names free of a leading "@".
func (c *Client) Namespace(prefix string) *Client {
	if !c.made() {
		return &Client{}
	}
	inner := &Client{core: c.core, view: true, space: spaceOf(c.space, prefix), refusal: c.refusal}
	if inner.refusal == nil {
		inner.refusal = validateNamespace(prefix)
	}
	return inner
}

// StoredName returns a name as the backend has it, and as errors, events and logs show
// it: the name itself, or of a client made by [Client.Namespace], with its namespace.
func (c *Client) StoredName(name string) string {
	if c == nil {
		return name
	}
	return c.space + name
}

// stored is StoredName of a name that may be bad.
func (c *Client) stored(name string) (string, error) {
	if c.refusal != nil {
		return "", c.refusal
	}
	if err := driver.ValidateName(name); err != nil {
		return "", err
	}
	return c.space + name, fits(c.space, name)
}

// shown is an entry of the namespace, as it is inside.
func (c *Client) shown(e Entry) Entry {
	e.Name = strings.TrimPrefix(e.Name, c.space)
	return e
}
