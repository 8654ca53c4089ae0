package sqlswap

import (
	"context"

	"github.com/pawl-go/pawl/locktable/swap"
)

// Names returns the names of the swaps with these indexes.
func Names(swaps []swap.Swap, indexes []int) []string {
	names := make([]string, len(indexes))
	for k, i := range indexes {
		names[k] = swaps[i].Name
	}
	return names
}

// StoredOf returns the value that a row has. It makes an empty value invalid, so that a
// name whose entry an operator has emptied does not count as free.
func StoredOf(version uint64, value []byte) swap.Stored {
	if len(value) == 0 {
		value = []byte{0}
	}
	return swap.Stored{Value: value, Version: version}
}

// LoadResults completes the results of the swaps with these indexes, which a statement
// may or may not have stored. It loads the values that their names have now. Each result
// has the version that its swap would have stored. LoadResults calls unchanged for a swap
// whose name still has its old value.
func LoadResults(ctx context.Context, load func(ctx context.Context, names []string) ([]swap.Stored, error),
	swaps []swap.Swap, results []swap.Swapped, indexes []int, unchanged func(i int),
) error {
	if len(indexes) == 0 {
		return nil
	}
	values, err := load(ctx, Names(swaps, indexes))
	if err != nil {
		return err
	}
	for k, i := range indexes {
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
