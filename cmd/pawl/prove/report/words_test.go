package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestWords(t *testing.T) {
	plain := func(s string) string { return strings.ReplaceAll(s, narrow, " ") }
	for got, want := range map[string]string{
		number(0): "0", number(999): "999", number(302114): "302 114", number(-1234567): "-1 234 567",
		counted(1, "lease"): "1 lease", counted(2, "process"): "2 processes",
		plural(1240, "pair of claims"): "1 240 pairs of claims", plural(2, "lost lease"): "2 lost leases",
		moment(192_400_000_000, 1): "3 min 12.4 s", moment(59_960_000_000, 1): "1 min 0.0 s", moment(12_345_678, 3): "0.012 s",
		length(0): "0 ns", length(1500): "1.50 µs", length(38_200_000): "38.2 ms", length(2 * time.Second): "2 s",
		length(999_999_999): "1000 ms", length(192 * time.Second): "3 min 12 s",
	} {
		if plain(got) != want {
			t.Errorf("%q, want %q", plain(got), want)
		}
	}
}

// constants returns the values of the string constants of a file.
func constants(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	noError(t, err)
	var all []string
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, _ := strconv.Unquote(lit.Value)
				all = append(all, s)
			}
		}
		return true
	})
	if len(all) == 0 {
		t.Fatalf("%s has no constants", file)
	}
	return all
}

func TestEachRuleHasASentence(t *testing.T) {
	for _, key := range constants(t, "../check/rules.go") {
		if !slices.ContainsFunc(rulesOf(newStory(&history.History{}), &check.Verdict{}), func(r rule) bool { return r.key == key }) {
			t.Errorf("the page has no sentence for the rule %q", key)
		}
	}
}

func TestEachKindOfFaultHasAColourAndAMeaning(t *testing.T) {
	all := constants(t, "../history/history.go")
	if !slices.Equal(slices.Sorted(maps.Keys(meanings)), slices.Sorted(slices.Values(history.Kinds()))) {
		t.Error("meanings has other kinds than history.Kinds")
	}
	for _, kind := range history.Kinds() {
		if !slices.Contains(all, kind) {
			t.Errorf("package history has no constant %q", kind)
		}
		if n := strings.Count(style(), "--f-"+kind+": "); n != 2 || !strings.Contains(style(), ".f-"+kind+" {") {
			t.Errorf("the style has %d colours for %q, want a light and a dark one, and a class", n, kind)
		}
	}
}

// The report and the dashboard should look like one product.
func TestTheReportHasTheDashboardsColours(t *testing.T) {
	dashboard, err := os.ReadFile("../../../../dashboard/assets/style.css")
	noError(t, err)
	colours := func(css string) []string { return regexp.MustCompile(`--[a-z-]+: [^;]+;`).FindAllString(css, -1) }
	dashboardColours := colours(string(dashboard))
	ownStyle, err := assets.ReadFile("assets/style.css")
	noError(t, err)
	if len(colours(string(ownStyle))) == 0 {
		t.Fatal("the report has no colours")
	}
	for _, c := range colours(string(ownStyle)) {
		if !slices.Contains(dashboardColours, c) {
			t.Errorf("the dashboard has no %s", c)
		}
	}
}
