// Command pictures draws the pictures of the documents: illustrations of how Pawl works,
// and charts of numbers that it reads from the documents. `make pictures` runs it in the
// root of the repository, and a test checks that docs/pictures has these pictures.
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
	{"entry", illustration(drawEntry)},
	{"claim", illustration(drawClaim)},
	{"lost", illustration(drawLost)},
	{"end", illustration(drawEnd)},
	{"quorum", illustration(drawQuorum)},
	{"benchmarks-redis", redisChart},
	{"benchmarks-databases", databasesChart},
	{"benchmarks-leases", leasesChart},
	{"reliability", reliabilityChart},
	{"locks-lose", lossesChart},
}

// illustration returns the draw function of a picture that needs no numbers.
func illustration(draw func() *canvas) func(string) (*canvas, error) {
	return func(string) (*canvas, error) { return draw(), nil }
}

func main() {
	if err := drawAll("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// drawAll draws all pictures into the folder docs/pictures.
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
