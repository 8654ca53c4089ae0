package dashboard

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A board has the parts of Grafana's JSON that the tests read.
type board struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type, Definition string
		}
	}
}

func readBoard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile("../grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// queries returns the queries of all panels by their titles, as Grafana sends them with
// every variable set to "All".
func (b *board) queries() map[string][]string {
	all := map[string][]string{}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], filled(target.Expr))
		}
	}
	return all
}

func filled(query string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$__range", "5m", "$job", ".*", "$instance", ".*").Replace(query)
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
