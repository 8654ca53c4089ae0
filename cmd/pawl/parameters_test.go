package main

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	listed "github.com/pawl-go/pawl/internal/backends"
)

// The package comments list the parameters of a URL. The code lists them in the error for
// an unknown parameter.
func TestPackageDocsListTheParametersOfTheirURLs(t *testing.T) {
	for _, b := range listed.All {
		folder, url := b.Folder, b.URL
		switch b.Name {
		case "memory":
			url = "mem:"
		case "SQLite":
			url = "sqlite:" + t.TempDir() + "/locks.db"
		case "PostgreSQL", "MongoDB":
			continue // their clients have more parameters, and check them first
		}
		if url == "" {
			continue
		}
		_, err := driver.Open(context.Background(), url+"?nonsense=1")
		invalid, ok := errors.AsType[*driver.InvalidError](err)
		if !ok {
			t.Fatalf("%s: %v", url, err)
		}
		var accepted []string
		if invalid.Allowed != "none" {
			accepted = strings.Split(invalid.Allowed, ", ")
		}
		if documented := listedParameters(t, "../../"+folder); !slices.Equal(documented, accepted) {
			t.Errorf("the package comment of %s has the parameters\n%v, and URLs may have\n%v", folder, documented, accepted)
		}
	}
}

// listedParameters returns the names of the parameters NAME= in a package comment.
func listedParameters(t *testing.T, folder string) (names []string) {
	t.Helper()
	files := mustGet(filepath.Glob(folder + "/*.go"))(t)
	name := regexp.MustCompile(`(?m)(?:^|[\s?&;,(])([a-z][a-zA-Z_]*)=`)
	for _, path := range files {
		f := mustGet(parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments))(t)
		for _, m := range name.FindAllStringSubmatch(f.Doc.Text(), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
