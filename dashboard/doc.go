// Package dashboard shows the locks of a backend in a browser: who holds what, who waits,
// who blocks whom, what has happened since the process started, and how the backend is.
//
//	h, err := dashboard.New(client, &dashboard.Options{Hosts: []string{"ops.example"}})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer h.Close()
//	mux.Handle("/locks/", h)
//
// It can be mounted under any path that ends with a slash, with http.StripPrefix or
// without. `pawl serve` is this handler with a listener and flags.
//
// It asks the backend the same however many look at it: at most twice a second, and less
// often the longer an answer takes. Changes of what is shown come at once, where the
// backend can push.
//
// # Security
//
// Whoever can open the page sees all names, owners, labels and values that the backend
// has, and none of its tokens. So a page that others can reach needs
// [Options.Token], or something in front of it that asks who they are. With
// [Options.AllowBreak] they can also break leases. docs/dashboard.md says what is
// defended against, and how.
package dashboard
