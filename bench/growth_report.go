package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// printGrowthTable prints a load as a table of Markdown. Each step has the processor time
// of client and server in µs, the bytes in both directions, and the time.
func printGrowthTable(w io.Writer, l load, rows []stepCosts) {
	fmt.Fprintf(w, "\n### %s: %s\n\n| step | what |", strings.ToUpper(l.name[:1])+l.name[1:], l.description)
	n := 0
	for _, r := range rows {
		n = max(n, len(r.Costs))
	}
	for _, size := range sizes[:n] {
		fmt.Fprintf(w, " %d |", size)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---|", n))
	for _, r := range rows {
		for i, what := range []string{"client + server µs", "bytes", "ms"} {
			first := ""
			if i == 0 {
				first = r.Step
			}
			fmt.Fprintf(w, "| %s | %s |", first, what)
			for k := range n {
				fmt.Fprintf(w, " %s |", r.cell(k, i))
			}
			fmt.Fprintln(w)
		}
	}
}

func (r stepCosts) cell(k, what int) string {
	if k >= len(r.Costs) {
		return ""
	}
	c := r.Costs[k]
	switch {
	case c.Err != "":
		return fmt.Sprintf("failed: %.60s", c.Err)
	case what == 0:
		return fmt.Sprintf("%.0f + %.0f", c.Client, c.Server)
	case what == 1:
		return fmt.Sprintf("%.0f", c.Bytes)
	default:
		return fmt.Sprintf("%.2f", float64(c.Took.Microseconds())/1000)
	}
}

// A cost counts as growing if it is more than maxFactor times as high at ten times the
// load. A logarithm rises by a third from 1 000 to 10 000, and a measurement may be wrong
// by some ten percent.
const maxFactor = 1.7

// slope returns the greatest exponent with which a cost grows between the last two sizes,
// and the name of the cost.
func (r stepCosts) slope() (exponent float64, what string) {
	n := len(r.Costs)
	if n < 2 || r.Costs[n-1].Err != "" || r.Costs[n-2].Err != "" {
		return 0, ""
	}
	before, after := r.Costs[n-2], r.Costs[n-1]
	tenfold := math.Log10(float64(after.N) / float64(before.N))
	for _, v := range []struct {
		name                       string
		before, after, minIncrease float64
	}{
		{"processor time", before.cpu(), after.cpu(), 50},
		{"bytes", before.Bytes, after.Bytes, 200},
		{"time", 1000 * before.Took.Seconds(), 1000 * after.Took.Seconds(), 0.5},
	} {
		if v.before <= 0 || v.after-v.before < v.minIncrease {
			continue
		}
		if e := math.Log10(v.after/v.before) / tenfold; v.after/v.before > maxFactor && e > exponent {
			exponent, what = e, v.name
		}
	}
	return exponent, what
}

// printGrowingSteps prints the steps whose cost grows faster than the logarithm.
func printGrowingSteps(w io.Writer, all []stepCosts) {
	fmt.Fprint(w, "\nSteps whose cost grows faster than the logarithm between the last two sizes:\n\n")
	none := true
	for _, r := range all {
		for _, c := range r.Costs {
			if c.Err != "" {
				fmt.Fprintf(w, "- %s: %s: failed with %d: %s\n", r.Load, r.Step, c.N, c.Err)
				none = false
				break
			}
		}
		if e, what := r.slope(); what != "" {
			fmt.Fprintf(w, "- %s: %s: n^%.1f (%s)\n", r.Load, r.Step, e, what)
			none = false
		}
	}
	if none {
		fmt.Fprintln(w, "- none")
	}
}

// saveGrowth writes the figures of an engine to the folder of all engines.
func saveGrowth(folder, engine string, all []stepCosts) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, engine+".json"), text, 0o600)
}

// printGrowthOverview prints a table of all engines in a folder: each step's processor
// time at a load of 10 and at the largest load. It also draws a picture of each engine.
func printGrowthOverview(w io.Writer, folder string) error {
	var names []string
	costsByEngine := map[string]map[string]stepCosts{}
	var order [][2]string
	for _, e := range append(localEngines, engines...) {
		text, err := os.ReadFile(filepath.Join(folder, e.name+".json"))
		if err != nil || costsByEngine[e.name] != nil {
			continue
		}
		var all []stepCosts
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
		if err := writeGrowthChart(filepath.Join(folder, "growth-"+e.name+".svg"), e.name, all); err != nil {
			return err
		}
		names, costsByEngine[e.name] = append(names, e.name), map[string]stepCosts{}
		for _, r := range all {
			key := [2]string{r.Load, r.Step}
			if !slices.Contains(order, key) {
				order = append(order, key)
			}
			costsByEngine[e.name][r.Load+r.Step] = r
		}
	}
	fmt.Fprintf(w, "\nµs of client and server, with 10 and with the most:\n\n| load | step | %s |\n|---|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, key := range order {
		fmt.Fprintf(w, "| %s | %s |", key[0], key[1])
		for _, name := range names {
			fmt.Fprintf(w, " %s |", costsByEngine[name][key[0]+key[1]].costRange())
		}
		fmt.Fprintln(w)
	}
	return nil
}

func writeGrowthChart(file, engine string, all []stepCosts) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	drawGrowthChart(f, engine, all)
	return f.Close()
}

// costRange returns the cost at a load of 10 and at the largest load.
func (r stepCosts) costRange() string {
	if len(r.Costs) < 2 {
		return ""
	}
	last := r.Costs[len(r.Costs)-1]
	if last.Err != "" || r.Costs[1].Err != "" {
		return "failed"
	}
	size := ""
	if last.N < sizes[len(sizes)-1] {
		size = fmt.Sprintf(" (%d)", last.N)
	}
	return threeDigits(r.Costs[1].cpu()) + " → " + threeDigits(last.cpu()) + size
}

// commit describes the commit of the repository in the working directory.
func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "outside of a repository"
	}
	return "commit " + strings.TrimSpace(string(text))
}

// drawGrowthChart draws a chart for each load, with both axes logarithmic. Each step is a
// line: its processor time. The lines of costs that grow are red and have a name.
func drawGrowthChart(w io.Writer, engine string, all []stepCosts) {
	const left, wide, high, gap = 70, 420, 190, 60
	var order []string
	fields := map[string][]stepCosts{}
	for _, r := range all {
		if fields[r.Load] == nil {
			order = append(order, r.Load)
		}
		fields[r.Load] = append(fields[r.Load], r)
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-labelledby="t d">
<title id="t">How the cost of each step grows on %s</title>
<desc id="d">A chart for each load. Its lines are the processor time of each step, client and server together, from 1 to 10 000; the steps whose cost grows are red. The table of the document has the figures.</desc>
<style>text{fill:#222}.axis{stroke:#bbb}.step{fill:none;stroke:#9db4c0;stroke-width:1.5}.grows{stroke:#c0392b;stroke-width:2}`+
		`@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#555}}</style>
`, left+wide+370, len(order)*(high+gap)+20, engine)
	const lowest, highest = 1, 6 // of the axis: 10 µs to 1 s
	for f, name := range order {
		top := 30 + f*(high+gap)
		at := func(n int, us float64) (x, y float64) {
			x = left + wide*math.Log10(float64(n))/4
			y = float64(top) + high*(1-(math.Log10(max(us, 10))-lowest)/(highest-lowest))
			return x, y
		}
		fmt.Fprintf(w, `<text x="%d" y="%d" font-weight="bold">%s: processor time of a step on %s, client and server</text>`+"\n", left, top-10, html.EscapeString(name), html.EscapeString(engine))
		for p, label := range map[int]string{1: "10 µs", 2: "100 µs", 3: "1 ms", 4: "10 ms", 5: "100 ms", 6: "1 s"} {
			_, y := at(1, math.Pow10(p))
			fmt.Fprintf(w, `<line class="axis" x1="%d" x2="%d" y1="%.0f" y2="%.0f"/><text x="%d" y="%.0f" text-anchor="end">%s</text>`+"\n", left, left+wide, y, y, left-6, y+4, label)
		}
		for _, n := range sizes {
			x, y := at(n, 10)
			fmt.Fprintf(w, `<text x="%.0f" y="%.0f" text-anchor="middle">%d</text>`+"\n", x, y+16, n)
		}
		var labels []label
		for _, r := range fields[name] {
			var points []string
			var x, y float64
			for _, c := range r.Costs {
				if c.Err == "" {
					x, y = at(c.N, c.cpu())
					points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
				}
			}
			class := "step"
			if e, what := r.slope(); what != "" {
				class = "step grows"
				labels = append(labels, label{x + 6, y + 4, fmt.Sprintf("%s, n^%.1f", r.Step, e)})
			}
			fmt.Fprintf(w, `<polyline class="%s" points="%s"><title>%s</title></polyline>`+"\n", class, strings.Join(points, " "), html.EscapeString(r.Step))
		}
		writeLabels(w, labels)
	}
	fmt.Fprintln(w, "</svg>")
}

// A label is a text at the end of a line.
type label struct {
	x, y float64
	text string
}

// writeLabels writes labels, and moves the ones that would overlap below each other.
func writeLabels(w io.Writer, labels []label) {
	slices.SortFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := range labels {
		if i > 0 {
			labels[i].y = max(labels[i].y, labels[i-1].y+13)
		}
		fmt.Fprintf(w, `<text x="%.0f" y="%.0f">%s</text>`+"\n", labels[i].x, labels[i].y, html.EscapeString(labels[i].text))
	}
}
