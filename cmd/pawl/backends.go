package main

// This file and servers.go import the backends. Each registers its URL schemes.
import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/driver"
	listed "github.com/pawl-go/pawl/internal/backends"
	_ "github.com/pawl-go/pawl/memlock"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

// urlPrefixes returns the beginnings of the URLs that this build accepts, such as redis:.
func urlPrefixes() []string {
	prefixes := driver.Schemes()
	for i := range prefixes {
		prefixes[i] += ":"
	}
	return prefixes
}

// schemas has, for each backend with tables, the function that returns their SQL.
var schemas = map[string]func(tables) (string, error){}

// urlColumns returns the list of URLs in the help, in two columns.
func urlColumns() string {
	var urls []string
	for _, b := range listed.All {
		if b.URL != "" {
			urls = append(urls, b.URL)
		}
	}
	var lines strings.Builder
	for half, i := (len(urls)+1)/2, 0; i < half; i++ {
		right := ""
		if half+i < len(urls) {
			right = urls[half+i]
		}
		lines.WriteString(strings.TrimRight(fmt.Sprintf("  %-33s%s", urls[i], right), " ") + "\n")
	}
	return lines.String()
}
