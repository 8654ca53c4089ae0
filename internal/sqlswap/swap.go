package sqlswap

import (
	"context"

	"github.com/pawl-go/pawl/locktable/swap"
)

// Names returns the names of some swaps.
func Names(swaps []swap.Swap, which []int) []string {
	names := make([]string, len(which))
	for k, i := range which {
		names[k] = swaps[i].Name
	}
	return names
}

// StoredOf returns the value in a row. It makes an empty value invalid, so that a name
// whose entry an operator has emptied does not count as free.
func StoredOf(version uint64, value []byte) swap.Stored {
	if len(value) == 0 {
		value = []byte{0}
	}
	return swap.Stored{Value: value, Version: version}
}

// LoadResults loads the values of names that a statement may not have changed, and
// completes the results of their swaps. A result has the version that its swap would have
// stored. LoadResults calls unchanged for a swap whose name still has its old value.
func LoadResults(ctx context.Context, load func(ctx context.Context, names []string) ([]swap.Stored, error),
	swaps []swap.Swap, results []swap.Swapped, which []int, unchanged func(i int),
) error {
	if len(which) == 0 {
		return nil
	}
	values, err := load(ctx, Names(swaps, which))
	if err != nil {
		return err
	}
	for k, i := range which {
		switch values[k].Version {
		case results[i].Version:
			results[i].Done = true
		case swaps[i].Version:
			unchanged(i)
		default:
			results[i].HasStored, results[i].Stored = true, values[k]
		}
	}
	return nil
}
