package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Writer writes lines. It is not safe for several goroutines.
type Writer struct {
	buffer *bufio.Writer
	lines  *json.Encoder
}

// NewWriter returns a writer to w. Flush writes what it has buffered.
func NewWriter(w io.Writer) *Writer {
	b := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return &Writer{b, e}
}

// Write writes a line.
func (w *Writer) Write(l Line) error { return w.lines.Encode(l) }

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.buffer.Flush() }

// Read yields the lines of a file. It ends with an error if a line cannot be read, if the
// file was written in another format, or if it was cut off. Equal texts of claims and
// writes share their memory: a history of a million claims has few different ones.
func Read(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		ended, known := false, map[string]string{}
		share := func(texts ...*string) {
			for _, s := range texts {
				if _, ok := known[*s]; !ok {
					known[*s] = *s
				}
				*s = known[*s]
			}
		}
		lines := json.NewDecoder(bufio.NewReaderSize(r, 1<<16))
		for n := 1; ; n++ {
			var l Line
			err := lines.Decode(&l)
			if errors.Is(err, io.EOF) {
				break
			}
			switch {
			case err != nil:
				err = fmt.Errorf("line %d: %w", n, err)
			case n == 1 && l.Run == nil:
				err = errors.New("line 1 does not say what was run: this is no history of pawl prove")
			case n == 1 && l.Run.Format != Format:
				err = fmt.Errorf("the history has format %d; this pawl reads format %d", l.Run.Format, Format)
			}
			if err != nil {
				yield(Line{}, err)
				return
			}
			if c := l.Claim; c != nil {
				share(&c.Name, &c.Mode, &c.How, &c.Answer, &c.Error, &c.Why, &c.Release)
			} else if l.Write != nil {
				share(&l.Write.Name)
			}
			ended = l.End != nil
			if !yield(l, nil) {
				return
			}
		}
		if !ended {
			yield(Line{}, errors.New("the history has no last line: it was cut off"))
		}
	}
}
