// Package worker is one process of a run of pawl prove: it takes locks, works in its
// sections, and tells the controller what it believes.
//
// It gets its Config and the answers of the register on standard input, and sends
// messages on standard output, as lines of JSON. It locks with a Client: Pawl, or one of
// the locks that it is compared with.
package worker
