//go:build !unix

package etcdtest

// Stop does nothing: processes cannot be stopped here, and no member is started.
func (*Member) Stop() {}

// Continue ends Stop.
func (*Member) Continue() {}
