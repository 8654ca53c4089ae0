package screen

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/cmd/pawl/internal/screentest"
)

// However one frame follows another, the terminal shows the last.
func TestFrameAfterFrame(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab 夜é🔒\x1b\u05d0\n\u0301")), 0, 20, -1)
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 16).Draw(t, "width"), rapid.IntRange(1, 4).Draw(t, "height")
		shown := screentest.New(width, height)
		var last *grid
		p := &pen{}
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			var lines []Line
			for range rapid.IntRange(0, height+1).Draw(t, "lines") {
				var line Line
				for range rapid.IntRange(0, 3).Draw(t, "spans") {
					line = append(line, Span{text.Draw(t, "text"), Style(rapid.IntRange(0, 63).Draw(t, "style"))})
				}
				lines = append(lines, line)
			}
			var b bytes.Buffer
			last = p.frame(&b, last, false, layOut(lines, width, height))
			_, _ = shown.Write(b.Bytes())
			if got, want := shown.Text(), Plain(lines, width, height); got != want {
				t.Fatalf("the terminal shows\n%q, want\n%q", got, want)
			}
			if odd := shown.Odd(); len(odd) > 0 {
				t.Fatalf("it was sent %q", odd)
			}
		}
	})
}

// Each second costs a few bytes, not a screen.
func TestOnlyWhatDiffersIsSent(t *testing.T) {
	lines := make([]Line, 24)
	for i := range lines {
		lines[i] = Text(strings.Repeat("x", 80), Bold)
	}
	p := &pen{}
	var first, second, third bytes.Buffer
	last := p.frame(&first, nil, false, layOut(lines, 80, 24))
	lines[3] = Line{{strings.Repeat("x", 70), Bold}, {"yz", Red}, {strings.Repeat("x", 8), Bold}}
	last = p.frame(&second, last, false, layOut(lines, 80, 24))
	p.frame(&third, last, false, layOut(lines, 80, 24))
	if first.Len() < 80*24 || second.Len() > 60 || third.Len() > 0 {
		t.Errorf("sent %d, %d and %d bytes", first.Len(), second.Len(), third.Len())
	}
}
