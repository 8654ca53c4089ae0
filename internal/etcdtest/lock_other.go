//go:build !unix

package etcdtest

// lock does nothing: at worst the server is built twice.
func lock(string) (unlock func(), err error) { return func() {}, nil }
