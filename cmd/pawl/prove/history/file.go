package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Writer writes lines. It is not safe for concurrent use.
type Writer struct {
	buffer *bufio.Writer
	lines  *json.Encoder
}

// NewWriter returns a writer to w with a buffer; see Flush.
func NewWriter(w io.Writer) *Writer {
	b := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return &Writer{b, e}
}

// Write writes a line.
func (w *Writer) Write(l Line) error { return w.lines.Encode(l) }

// Flush writes the buffered lines.
func (w *Writer) Flush() error { return w.buffer.Flush() }

// Read reads a history. It returns an error if a line is invalid, if the file has another
// format, or if it was cut off. Equal texts of claims and writes share their memory,
// because a history of a million claims has few different ones.
func Read(r io.Reader) (*History, error) {
	h, known := &History{}, map[string]string{}
	share := func(texts ...*string) {
		for _, s := range texts {
			if _, ok := known[*s]; !ok {
				known[*s] = *s
			}
			*s = known[*s]
		}
	}
	ended := false
	lines := json.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	for n := 1; ; n++ {
		var l Line
		switch err := lines.Decode(&l); {
		case errors.Is(err, io.EOF) && ended:
			return h, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the history has no last line: it was cut off")
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case n == 1 && l.Run == nil:
			return nil, errors.New("this is no history of pawl prove: line 1 does not describe a run")
		case n == 1 && l.Run.Format != Format:
			return nil, fmt.Errorf("the history has format %d; this pawl reads format %d", l.Run.Format, Format)
		}
		if c := l.Claim; c != nil {
			share(&c.Name, &c.Mode, &c.How, &c.Answer, &c.Error, &c.Why, &c.Release)
		} else if l.Write != nil {
			share(&l.Write.Name)
		}
		ended = l.End != nil
		h.Add(l)
	}
}

// A History has the lines of a file by their kinds, in the order of the file.
type History struct {
	Run     Run
	Phases  []Phase
	Claims  []*Claim
	Writes  []*Write
	Faults  []Fault
	Workers []Worker
	Left    []Left
	End     End
	Last    int64 // the latest time of all lines
}

// Add adds a line.
func (h *History) Add(l Line) {
	var last int64
	switch {
	case l.Run != nil:
		h.Run = *l.Run
	case l.Phase != nil:
		h.Phases, last = append(h.Phases, *l.Phase), l.Phase.To
	case l.Claim != nil:
		h.Claims, last = append(h.Claims, l.Claim), l.Claim.Last()
	case l.Write != nil:
		h.Writes, last = append(h.Writes, l.Write), l.Write.At
	case l.Fault != nil:
		h.Faults, last = append(h.Faults, *l.Fault), l.Fault.To
	case l.Worker != nil:
		h.Workers, last = append(h.Workers, *l.Worker), l.Worker.To
	case l.Left != nil:
		h.Left, last = append(h.Left, *l.Left), l.Left.At
	case l.End != nil:
		h.End, last = *l.End, l.End.At
	}
	h.Last = max(h.Last, last)
}

// Phase returns the times of a phase; ok is false if the run did not reach it.
func (h *History) Phase(phase string) (from, to int64, ok bool) {
	for _, p := range h.Phases {
		if p.Phase == phase {
			return p.From, p.To, true
		}
	}
	return 0, 0, false
}
