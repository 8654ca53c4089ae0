package backoff

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestPausesGrowUpToTheirBound(t *testing.T) {
	const first, most = 10 * time.Millisecond, time.Second
	for name, grown := range map[string]func(time.Duration, int, time.Duration) time.Duration{"Doubled": Doubled, "GrownByHalf": GrownByHalf} {
		last := time.Duration(0)
		for n := range 200 {
			d := grown(first, n, most)
			if d > most || d < last || d == last && d != most {
				t.Fatalf("%s: pause %d is %v after %v", name, n, d, last)
			}
			last = d
		}
		if last != most {
			t.Errorf("%s: the longest pause is %v", name, last)
		}
		if d := grown(first, 100, math.MaxInt64); d < math.MaxInt64/4 {
			t.Errorf("%s: without a bound it overflows to %v", name, d)
		}
		if d := grown(first, 0, time.Millisecond); d != time.Millisecond {
			t.Errorf("%s: the first pause is %v, over its bound", name, d)
		}
	}
	if d := Doubled(first, 3, most); d != 80*time.Millisecond {
		t.Errorf("10ms doubled three times is %v", d)
	}
	if d := GrownByHalf(first, 2, most); d != 22500*time.Microsecond {
		t.Errorf("10ms increased by half twice is %v", d)
	}
}

func TestRandomPausesStayInTheirRange(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, 2, time.Second} {
		for range 1000 {
			if x := Random(d); x < 0 || x > 0 && x >= d {
				t.Fatalf("Random(%v) is %v", d, x)
			}
			if x := JitterDown(d); d > 0 && (x > d || x < d/2) {
				t.Fatalf("JitterDown(%v) is %v", d, x)
			}
			if x := Jitter(d); d > 0 && (x < d/2 || x > d/2+d) {
				t.Fatalf("Jitter(%v) is %v", d, x)
			}
			if x := JitterUp(d); d > 0 && (x < d || x >= 2*d) {
				t.Fatalf("JitterUp(%v) is %v", d, x)
			}
		}
	}
}

func TestASeedRepeatsThePauses(t *testing.T) {
	pauses := func(seed uint64) (all []time.Duration) {
		defer Seed(seed)()
		for range 10 {
			all = append(all, Random(time.Hour))
		}
		return all
	}
	if !slices.Equal(pauses(1), pauses(1)) || slices.Equal(pauses(1), pauses(2)) {
		t.Error("equal seeds give different pauses, or different seeds give equal ones")
	}
	if slices.Equal(pauses(1), func() (all []time.Duration) {
		for range 10 {
			all = append(all, Random(time.Hour))
		}
		return all
	}()) {
		t.Error("the seed still has an effect after stop")
	}
}
