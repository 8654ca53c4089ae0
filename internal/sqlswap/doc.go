// Package sqlswap has the common code of the stores of locks in SQL databases. It reads
// the rows of a query, scans names by pages, completes the results of swaps, and deletes
// unused names. It has no SQL statements, because they differ between databases. etcdlock
// uses the scans and the deletion, too.
package sqlswap
