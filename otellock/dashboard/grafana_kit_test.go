package dashboard

import (
	"encoding/json"
	"fmt"
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
			Current                struct{ Value any }
		}
	}
}

func readBoard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile("../grafana.json")
	noError(t, err)
	noError(t, json.Unmarshal(text, &b))
	return b
}

// queries returns the queries of all panels by their titles, as Grafana sends them when
// the board is opened.
func (b *board) queries() map[string][]string {
	all := map[string][]string{}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], b.fillVariables(target.Expr))
		}
	}
	return all
}

// fillVariables replaces the variables of a query: a list by the pattern of "All", a text
// box by its default.
func (b *board) fillVariables(query string) string {
	pairs := []string{"$__rate_interval", "1m", "$__range", "5m"}
	for _, v := range b.Templating.List {
		value := ".*"
		if v.Type == "textbox" {
			value = fmt.Sprint(v.Current.Value)
		}
		pairs = append(pairs, "$"+v.Name, value)
	}
	return strings.NewReplacer(pairs...).Replace(query)
}

// needsNames reports whether a query selects names, which are exported only with
// otellock.Options.Names.
func needsNames(query string) bool { return strings.Contains(query, "pawl_name=~") }

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
