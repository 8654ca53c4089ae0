package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A table is the output of one scenario of `make peers`, as a document has it.
type table struct {
	heading string // of the part of the document that it stands in
	name    string // of the scenario: own-64
	what    string // "64 goroutines on names of their own"
	columns []string
	rows    [][]string // the contender, and its cells
}

var (
	title  = regexp.MustCompile(`^([a-z]+(?:-\w+)*): (.+)$`)
	blanks = regexp.MustCompile(`\s{2,}`)
)

// printed reads the tables that stand as code in a document.
func printed(docs, file string) ([]table, error) {
	text, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		return nil, err
	}
	var found []table
	heading, code := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		m := title.FindStringSubmatch(line)
		switch {
		case !code:
			if after, ok := strings.CutPrefix(line, "#"); ok {
				heading = strings.TrimLeft(after, "# ")
			}
		case m != nil:
			found = append(found, table{heading: heading, name: m[1], what: m[2]})
		case strings.HasPrefix(line, "  ") && len(found) > 0:
			last, cells := &found[len(found)-1], blanks.Split(strings.TrimSpace(line), -1)
			if last.columns == nil {
				last.columns = cells
			} else {
				last.rows = append(last.rows, cells)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no tables", file)
	}
	return found, nil
}

// figure is one number of a row. ok is false if the cell has no number, because the
// contender failed.
func (t table) figure(row []string, column string) (x float64, ok bool) {
	i := slices.Index(t.columns, column)
	if i < 0 || i >= len(row) || len(row) != len(t.columns) {
		return 0, false
	}
	x, err := strconv.ParseFloat(row[i], 64)
	return x, err == nil
}

// marked reads the rows of a document's own tables in the part with a heading, as cells,
// the head of each table before its rows.
func marked(docs, file, heading string) ([][]string, error) {
	text, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		return nil, err
	}
	_, part, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no %q", file, heading)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var rows [][]string
	for line := range strings.Lines(part) {
		if strings.HasPrefix(line, "| ") {
			rows = append(rows, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	return rows, nil
}
