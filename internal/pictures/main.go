// Command pictures draws the pictures of the documents: how it works, by hand, and the
// charts, from the numbers that the documents have. `make pictures` runs it in the root
// of the repository, and a test holds that what is in docs/pictures is what it draws.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A picture is one file of docs/pictures.
type picture struct {
	name string
	draw func(docs string) (*canvas, error)
}

var pictures = []picture{
	{"entry", byHand(entry)},
	{"claim", byHand(claim)},
	{"lost", byHand(lost)},
	{"end", byHand(end)},
	{"quorum", byHand(quorum)},
	{"benchmarks-redis", redisChart},
	{"benchmarks-databases", databasesChart},
	{"benchmarks-leases", leasesChart},
	{"reliability", reliabilityChart},
	{"locks-lose", lossesChart},
}

// byHand is a picture that needs no numbers.
func byHand(draw func() *canvas) func(string) (*canvas, error) {
	return func(string) (*canvas, error) { return draw(), nil }
}

func main() {
	if err := drawAll("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// drawAll draws into the folder pictures of the documents.
func drawAll(docs string) error {
	for _, p := range pictures {
		c, err := p.draw(docs)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(docs, "pictures", p.name+".svg"), []byte(c.String()), 0o644); err != nil { //nolint:gosec // for all to read
			return err
		}
	}
	return nil
}
