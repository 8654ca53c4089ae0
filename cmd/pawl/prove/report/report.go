// Package report writes the findings of a run of pawl prove as one HTML file: the
// verdict, the rules, the violations, a timeline of all leases and faults, and the
// numbers.
//
// The file needs no network, and sends no request: its style, its scripts and its data
// are in it, and its policy forbids everything else. Everything except the timeline also
// works without scripts.
package report

import (
	"io"
	"iter"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Write writes the report of a history. The error is about reading the history, or about
// w.
func Write(w io.Writer, lines iter.Seq2[history.Line, error], v *check.Verdict) error {
	s, err := gather(lines)
	if err != nil {
		return err
	}
	d := s.choose(v, mostDrawn)
	_, err = w.Write(document(title(v), page(s, d, v), s.data(d, v)))
	return err
}
