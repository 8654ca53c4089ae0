package check

import (
	"bytes"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// million is a history of a million claims of ten names, with faults.
func million(tb testing.TB) []history.Line {
	tb.Helper()
	return simulateNames(1, 40, 10, 1_000_000, history.Stop, history.Kill, history.Silence)
}

// go test -bench Check -run '^$'
func BenchmarkCheck(b *testing.B) {
	lines := million(b)
	b.ResetTimer()
	for b.Loop() {
		v := Run(historyOf(lines))
		if len(v.Violations) > 0 {
			b.Fatal(texts(v))
		}
		b.ReportMetric(float64(v.Numbers.PorcupinePieces), "pieces")
		b.ReportMetric(float64(v.Numbers.PorcupineOperations), "operations")
		b.ReportMetric(float64(v.Numbers.PorcupineGaveUp), "gave-up")
	}
}

func BenchmarkRule(b *testing.B) {
	w := newWorld(historyOf(million(b)))
	for _, r := range []struct {
		name string
		rule func(*name)
	}{
		{"overlap", w.overlap}, {"fences", w.fences}, {"release", w.releaseLied}, {"told", w.lostNotTold},
		{"order", w.order}, {"idle", w.idle}, {"linearizable", w.linearizable},
	} {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				for _, n := range w.names {
					r.rule(n)
				}
			}
		})
	}
}

// BenchmarkFile also measures the decoding of the history.
func BenchmarkFile(b *testing.B) {
	var file bytes.Buffer
	out := history.NewWriter(&file)
	for _, l := range million(b) {
		noError(b, out.Write(l))
	}
	noError(b, out.Flush())
	b.SetBytes(int64(file.Len()))
	b.ResetTimer()
	for b.Loop() {
		h, err := history.Read(bytes.NewReader(file.Bytes()))
		noError(b, err)
		if v := Run(h); len(v.Violations) > 0 {
			b.Fatal(texts(v))
		}
	}
}
