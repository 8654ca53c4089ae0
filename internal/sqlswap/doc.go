// Package sqlswap is shared by the stores of locks in SQL databases: rows of a query,
// scans by pages, the values that swaps found, and tidying. It has no statement itself;
// the statements of two databases have nothing in common. etcd, which keeps its keys in
// order like the rows of a table, uses the scans and the tidying, too.
package sqlswap
