// Package sqlswap is shared by the stores of locks in SQL databases: rows of a query,
// scans by pages, the values that swaps found, and the deletion of unused names. It has
// no SQL statements, because they differ between databases. etcdlock uses the scans and
// the deletion, too.
package sqlswap
