package sqlswap

import (
	"iter"
	"strings"
)

// PageSize is the number of rows that a scan reads at a time.
const PageSize = 256

// Scan yields the rows whose names start with a prefix, in the order of their names. page
// reads up to n rows, beginning at a given name. Scan reads a page at a time, so that a
// slow caller occupies no connection.
func Scan[R any](prefix string, page func(from string, n int) ([]R, error), name func(R) string) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for from, more := prefix, true; more; {
			rows, err := page(from, PageSize)
			if err != nil {
				var none R
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !strings.HasPrefix(name(row), prefix) || !yield(row, nil) {
					return
				}
				from = Next(name(row))
			}
			more = len(rows) == PageSize
		}
	}
}

// Next returns the lowest name that sorts after the given name.
func Next(name string) string { return name + "\x00" }
