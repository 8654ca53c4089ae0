// Package doctable generates tables of the documents from rows that tests compute. A test
// fails if a document has other rows. With the flag -update it writes its own.
package doctable

import (
	"flag"
	"os"
	"slices"
	"strings"
)

var update = flag.Bool("update", false, "write the tables of the documents")

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Rows returns the rows of a document's table with this head, by their first cells.
func Rows(tb TB, file, head string) map[string]string {
	tb.Helper()
	_, table, _ := cutTable(tb, file, head)
	rows := map[string]string{}
	for row := range strings.Lines(table) {
		rows[firstCell(row)] = strings.TrimSuffix(row, "\n")
	}
	return rows
}

// Want requires that the table with this head has these rows, in any order; it ignores
// empty rows. The flag -update keeps the order of the document, and puts new rows at the
// end.
func Want(tb TB, file, head string, rows []string) {
	tb.Helper()
	before, table, after := cutTable(tb, file, head)
	var order []string
	for row := range strings.Lines(table) {
		order = append(order, firstCell(row))
	}
	placeOf := func(row string) int {
		if i := slices.Index(order, firstCell(row)); i >= 0 {
			return i
		}
		return len(order)
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return row == "" })
	slices.SortStableFunc(rows, func(a, b string) int { return placeOf(a) - placeOf(b) })
	want := strings.Join(rows, "\n") + "\n"
	if want == table {
		return
	}
	if !*update {
		tb.Errorf("%s: a table is not current; go test -update writes it. It has\n%s\nwant\n%s", file, extraRows(table, want), extraRows(want, table))
		return
	}
	if err := os.WriteFile(file, []byte(before+want+after), 0o600); err != nil {
		tb.Errorf("%v", err)
	}
}

// cutTable returns the rows of a table, and the document's text before and after them.
func cutTable(tb TB, file, head string) (before, rows, after string) {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	before, rest, found := strings.Cut(string(text), "\n"+head+"\n")
	ruler, rest, hasRuler := strings.Cut(rest, "\n")
	if !found || !hasRuler {
		tb.Fatalf("%s has no table that begins with %s", file, head)
	}
	for row := range strings.Lines(rest) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		rows += row
	}
	return before + "\n" + head + "\n" + ruler + "\n", rows, rest[len(rows):]
}

// extraRows returns the rows of a table that the other table lacks.
func extraRows(table, other string) (rows string) {
	for row := range strings.Lines(table) {
		if !strings.Contains("\n"+other, "\n"+row) {
			rows += row
		}
	}
	return rows
}

// firstCell returns the first cell of a row.
func firstCell(row string) string {
	cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
	return cell
}
