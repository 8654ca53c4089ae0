package servertest

import (
	"context"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Findings has a line for each finding: severity, subject, detail.
type Findings []string

// FindingsOf makes d examine its servers. Each finding must have advice. FindingsOf
// leaves out the servers' versions, which need none.
func FindingsOf(tb TB, d driver.Diagnoser) (all Findings) {
	tb.Helper()
	list, err := d.Diagnose(context.Background())
	noError(tb, err)
	for _, f := range list {
		if f.Advice == "" && f.Subject == "server" {
			continue
		}
		if f.Advice == "" {
			tb.Errorf("%+v has no advice", f)
		}
		all = append(all, string(f.Severity)+" "+f.Subject+" "+f.Detail)
	}
	return all
}

// Have reports whether one finding begins with the first text, and contains the others.
func (f Findings) Have(words ...string) bool {
	for _, line := range f {
		ok := strings.HasPrefix(line, words[0])
		for _, w := range words[1:] {
			ok = ok && strings.Contains(line, w)
		}
		if ok {
			return true
		}
	}
	return false
}
