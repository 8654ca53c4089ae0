package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const docs = "../../docs"

// After a change of a document's number, or of a drawing, the test fails until make
// pictures has run.
func TestPicturesAreUpToDate(t *testing.T) {
	drawn := map[string]bool{}
	for _, p := range pictures {
		drawn[p.name+".svg"] = true
		c, err := p.draw(docs)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		if current, err := os.ReadFile(filepath.Join(docs, "pictures", p.name+".svg")); err != nil || string(current) != c.String() {
			t.Errorf("docs/pictures/%s.svg is not current: run `make pictures`, and look at it (%v)", p.name, err)
		}
	}
	current, err := filepath.Glob(filepath.Join(docs, "pictures", "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range current {
		// make growth draws these, from measurements on a server for each engine.
		if name := filepath.Base(file); !drawn[name] && !strings.HasPrefix(name, "growth-") {
			t.Errorf("nothing draws %s", file)
		}
	}
}

// Each picture of the documents is well-formed, has a title and a description for readers
// who cannot see it, has colours for the dark mode, and a page shows it with an alt text.
func TestPicturesAreAccessible(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.svg", "pictures/*.svg"} {
		found, err := filepath.Glob(filepath.Join(docs, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < len(pictures) {
		t.Fatalf("only these pictures were found: %q", files)
	}
	pages := readAllPages(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for dec := xml.NewDecoder(strings.NewReader(string(text))); ; {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", file, err)
				break
			}
		}
		for _, has := range []string{`<title id="t">`, `<desc id="d">`, "@media(prefers-color-scheme:dark)", `role="img"`} {
			if !strings.Contains(string(text), has) {
				t.Errorf("%s has no %s", file, has)
			}
		}
		shown := regexp.MustCompile(`!\[[^\]]{10,}\]\([\w/.]*` + regexp.QuoteMeta(filepath.Base(file)) + `\)`)
		if !shown.MatchString(pages) {
			t.Errorf("no page shows %s with an alt text", file)
		}
	}
}

func readAllPages(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"../../*.md", docs + "/*.md", docs + "/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

// The test writes a document, and reads the numbers that a chart would draw.
func TestTheTablesOfADocumentAreRead(t *testing.T) {
	dir := t.TempDir()
	text := "# Engine 1, one server\n\n```\nown-1: one goroutine, one name\n" +
		"             contender  cycles/s  ratio\n                  pawl     14380   0.60\n   rueidislock (1 key)    failed  context deadline exceeded\n\n" +
		"held-10: 10 leases\n  contender  B/lease  lost\n       pawl      930     0\n```\n\n## Bugs\n\n| a bug | seed |\n|---|---|\n| a swap | 315 |\n\n## More\n\n| b | 1 |\n"
	if err := os.WriteFile(filepath.Join(dir, "x.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tables, err := codeTables(dir, "x.md")
	if err != nil || len(tables) != 2 {
		t.Fatalf("%+v, %v; want two tables", tables, err)
	}
	own, held := tables[0], tables[1]
	if own.heading != "Engine 1, one server" || own.what != "one goroutine, one name" || held.name != "held-10" {
		t.Errorf("the headings, names or descriptions are wrong in %+v", tables)
	}
	if x, ok := own.figure(own.rows[0], "cycles/s"); !ok || x != 14380 {
		t.Errorf("cycles/s is %v, %v; want 14380", x, ok)
	}
	if x, ok := own.figure(own.rows[1], "cycles/s"); ok {
		t.Errorf("a contender that failed has %v", x)
	}
	if x, ok := held.figure(held.rows[0], "B/lease"); !ok || x != 930 {
		t.Errorf("B/lease is %v, %v; want 930", x, ok)
	}
	rows, err := tableRows(dir, "x.md", "Bugs")
	if err != nil || len(rows) != 2 || rows[1][1] != "315" {
		t.Errorf("the rows of Bugs are %q, %v; want a head and one row", rows, err)
	}
	if got := groupThousands(1234567); got != "1 234 567" {
		t.Errorf("1234567 is formatted as %q", got)
	}
}
