package check

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestOverlap(t *testing.T) {
	// The first holders released too late, so that only the expected rules are broken.
	late := func(c *history.Claim) { c.Release, c.Lost, c.Woken = history.Late, c.Believed+1, c.Believed+1 }
	forgets := func(r *history.Run) { r.Forgets = true }
	checkCases(t, []historyCase{
		{"one after the other", []any{hold(1, 0, 10, 20, 1), hold(2, 5, 21, 30, 2)}, ""},
		{"the second begins when the first ends", []any{hold(1, 0, 10, 20, 1), hold(2, 5, 20, 30, 2)}, ""},
		{"both are sure", []any{hold(1, 0, 10, 20, 1, late), hold(2, 5, 19, 30, 2)}, "overlap linearizable"},
		{"both are sure, without fences", []any{
			run(func(r *history.Run) { r.Fenced = false }),
			hold(1, 0, 10, 20, 0, late), hold(2, 5, 19, 30, 0),
		}, "overlap linearizable"},
		{"the second was never sure", []any{
			hold(1, 0, 10, 20, 2), hold(2, 5, 19, 0, 1, lost(0, 20, 20, 30)),
		}, ""},
		{"two names", []any{hold(1, 0, 10, 20, 1), hold(2, 5, 11, 30, 2, writer)}, ""},

		{"readers", []any{hold(1, 0, 10, 20, 1, reader), hold(2, 5, 15, 30, 2, reader)}, ""},
		{"a reader and a writer", []any{
			hold(1, 0, 10, 20, 1, reader, late), hold(2, 5, 15, 30, 2, writer),
		}, "overlap linearizable"},
		{"a writer and a reader", []any{
			hold(1, 0, 10, 20, 1, writer, late), hold(2, 5, 15, 30, 2, reader),
		}, "overlap linearizable"},

		{"all permits", []any{hold(1, 0, 10, 20, 1, permits(1)), hold(2, 5, 15, 30, 2, permits(2))}, ""},
		{"one permit more", []any{
			hold(1, 0, 10, 20, 1, permits(1), late), hold(2, 5, 15, 30, 2, permits(1), late),
			hold(3, 5, 16, 30, 3, permits(2)),
		}, "overlap linearizable"},
		{"one permit more, but one after the other", []any{
			hold(1, 0, 10, 20, 1, permits(1)), hold(2, 5, 15, 30, 2, permits(1)), hold(3, 5, 21, 30, 3, permits(2)),
		}, ""},

		{"the server forgot it", []any{
			run(forgets), fault(history.ServerKill, server, 11, 12),
			hold(1, 0, 10, 20, 1, late), hold(2, 5, 19, 30, 2),
		}, ""},
		{"the server forgot before", []any{
			run(forgets), fault(history.ServerKill, server, 1, 2),
			hold(1, 0, 5010, 5020, 1, late), hold(2, 5, 5019, 5030, 2),
		}, "overlap linearizable"},
		{"the server may not forget", []any{
			fault(history.ServerKill, server, 11, 12),
			hold(1, 0, 10, 20, 1, late), hold(2, 5, 19, 30, 2),
		}, "overlap linearizable"},
	})
}

func TestOverlapText(t *testing.T) {
	late := func(c *history.Claim) { c.Release = history.Late }
	v := verdict(t, hold(1, 0, 1000, 2500, 1, late), hold(2, 5, 2000, 3000, 2))
	want := `Worker 2 (claim 2) got "a mutex" at 2.000 s and was sure to hold it until 3.000 s. ` +
		`For 500 ms, worker 1 (claim 1) was sure to hold it, too.`
	for _, x := range v.Violations {
		if x.Rule == Overlap {
			if x.Text != want {
				t.Errorf("the text is\n%s\nwant\n%s", x.Text, want)
			}
			if x.Name != mutex || x.From != ms(2000) || x.To != ms(2500) || len(x.Claims) != 2 {
				t.Errorf("the violation is %+v", x)
			}
			return
		}
	}
	t.Errorf("no overlap: %s", texts(v))
}

func TestAFailOverExcusesAnOverlap(t *testing.T) {
	late := func(c *history.Claim) { c.Release = history.Late }
	v := verdict(t, run(func(r *history.Run) { r.Forgets = true }),
		fault(history.FailOver, server, 11, 12),
		hold(1, 0, 10, 20, 1, late), hold(2, 5, 19, 30, 2), hold(3, 40, 41, 50, 3, late), hold(4, 40, 49, 60, 4))
	if v.Announced != 1 || v.Count[Overlap] != 1 {
		t.Errorf("%d overlaps were excused, and %d were not; want 1 and 1", v.Announced, v.Count[Overlap])
	}
}
