// Package sqlswap has what the stores of locks in SQL databases share: scans by pages,
// the values that swaps found, and tidying. It sends no statement itself; the statements
// of two databases have nothing in common.
package sqlswap
