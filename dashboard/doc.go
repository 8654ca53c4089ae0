// Package dashboard shows the locks of a backend in a browser: who holds what, who waits,
// who blocks whom, what has happened since the process started, and the state of the
// backend.
//
//	h, err := dashboard.New(client, &dashboard.Options{Hosts: []string{"ops.example"}})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer h.Close()
//	mux.Handle("/locks/", h)
//
// It can be mounted under any path that ends with a slash, with or without
// http.StripPrefix. `pawl serve` is this handler with a listener and flags.
//
// The load on the backend does not depend on the number of open pages: the dashboard
// reads it at most twice a second, and less often the longer an answer takes. If the
// backend can push, changes on an open page appear at once.
//
// # Security
//
// A person who can open the page sees all names, owners, labels and values of the
// backend, but no tokens. So a page that others can reach needs [Options.Token], or a
// proxy that authenticates them. With [Options.AllowBreak] they can also break leases.
// docs/dashboard.md describes the attacks, and the defences against them.
package dashboard
