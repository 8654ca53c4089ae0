// Package prove runs worker processes that lock on a user's database, does to them and to
// the database what goes wrong in production, and writes down what happened.
//
// The controller here shares nothing with the locks: it has processes, proxies, a
// register and a file. Package check decides what the file shows.
package prove
