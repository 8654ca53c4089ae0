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

// A table is the output of one scenario of `make peers`, in a document.
type table struct {
	heading string // of its part of the document
	name    string // of the scenario: own-64
	what    string // "64 goroutines on names of their own"
	columns []string
	rows    [][]string // the contender, and its cells
}

var (
	scenarioTitle = regexp.MustCompile(`^([a-z]+(?:-\w+)*): (.+)$`)
	cellGap       = regexp.MustCompile(`\s{2,}`)
)

// codeTables reads the tables in the code blocks of a document.
func codeTables(docs, file string) ([]table, error) {
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
		m := scenarioTitle.FindStringSubmatch(line)
		switch {
		case !code:
			if after, ok := strings.CutPrefix(line, "#"); ok {
				heading = strings.TrimLeft(after, "# ")
			}
		case m != nil:
			found = append(found, table{heading: heading, name: m[1], what: m[2]})
		case strings.HasPrefix(line, "  ") && len(found) > 0:
			last, cells := &found[len(found)-1], cellGap.Split(strings.TrimSpace(line), -1)
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

// figure returns one number of a row. ok is false if the cell has no number, because the
// contender failed.
func (t table) figure(row []string, column string) (x float64, ok bool) {
	i := slices.Index(t.columns, column)
	if i < 0 || i >= len(row) || len(row) != len(t.columns) {
		return 0, false
	}
	x, err := strconv.ParseFloat(row[i], 64)
	return x, err == nil
}

// tableRows reads the Markdown tables in the part of a document with this heading. It
// returns the head of each table, and then its rows, as cells.
func tableRows(docs, file, heading string) ([][]string, error) {
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
