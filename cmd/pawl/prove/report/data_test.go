package report

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// column reads what packed returned, as the script does.
func column(t *testing.T, raw json.RawMessage, n int) []int64 {
	t.Helper()
	all := make([]int64, n)
	var same int64
	if json.Unmarshal(raw, &same) == nil {
		for i := range all {
			all[i] = same
		}
		return all
	}
	var list []int64
	if json.Unmarshal(raw, &list) == nil {
		copy(all, list)
		return all
	}
	var some struct{ At, Is []int64 }
	noError(t, json.Unmarshal(raw, &some))
	at := int64(0)
	for i, step := range some.At {
		at += step
		all[at] = some.Is[i]
	}
	return all
}

func TestColumnsKeepTheirNumbers(t *testing.T) {
	sparse := make([]int64, 1000)
	sparse[3], sparse[4], sparse[999] = 7, math.MaxInt64>>11, -2
	for name, want := range map[string][]int64{
		"same": {5, 5, 5}, "zeros": make([]int64, 50), "sparse": sparse, "full": {1, -2, 3}, "none": {},
	} {
		raw, _ := json.Marshal(packed(want))
		got := column(t, raw, len(want))
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: number %d is %d, want %d", name, i, got[i], want[i])
			}
		}
	}
}

func TestTheDataHasTheClaims(t *testing.T) {
	claims := []history.Claim{
		{ID: 9, Name: "a", Asked: 0, Answered: 5, Got: 5, Answer: history.Granted, Fence: math.MaxUint64, Believed: 7, Released: 8, Freed: 9, Release: history.OK},
		{ID: 4, Worker: 3, Name: "a", Asked: 100, Answered: 300, Got: 300, Answer: history.Granted, Fence: 2, Believed: 400, Lost: 500, Why: "late"},
		{ID: 7, Name: "b", Asked: 200, Answer: history.Unknown, Died: 250, Error: "gone"},
	}
	m := &madeHistory{v: &check.Verdict{}, lines: []history.Line{{Run: &history.Run{}}}}
	for i := range claims {
		m.lines = append(m.lines, history.Line{Claim: &claims[i]})
	}
	s := newStory(m.history())
	var d struct {
		Names  []lockName
		Texts  []string
		Claims map[string]json.RawMessage
	}
	noError(t, json.Unmarshal(s.data(s.choose(m.v, maxDrawn), m.v), &d))
	get := func(key string) []int64 { return column(t, d.Claims[key], 3) }
	ids, asked := get("id"), get("asked")
	var id, at int64
	for i := range claims {
		id, at = id+ids[i], at+asked[i]
		c := &claims[i]
		if id != c.ID || at != c.Asked || d.Names[get("name")[i]].Name != c.Name || d.Texts[get("why")[i]] != c.Why ||
			d.Texts[get("problem")[i]] != c.Error || get("worker")[i] != int64(c.Worker) {
			t.Errorf("claim %d is not what it was", c.ID)
		}
		for key, want := range map[string]int64{"got": c.Got, "believed": c.Believed, "lost": c.Lost, "released": c.Released, "died": c.Died} {
			got := get(key)[i]
			if got != 0 {
				got += at - 1
			}
			if got != want {
				t.Errorf("claim %d: %s is %d, want %d", c.ID, key, got, want)
			}
		}
	}
	if end := get("end"); end[0] != endReleased || end[1] != endLost || end[2] != endAsking {
		t.Errorf("the ends are %v", end)
	}
	var fences []json.RawMessage
	noError(t, json.Unmarshal(d.Claims["fence"], &fences))
	if want := strconv.Quote("18446744073709551614"); string(fences[0]) != want || string(fences[1]) != "1" || d.Names[0].Base != "2" {
		t.Errorf("the fences are %s from %s", fences, d.Names[0].Base)
	}
}

func TestManyDifferentTexts(t *testing.T) {
	var texts table
	for i := range maxTexts * 2 {
		texts.add(strconv.Itoa(i))
	}
	if n := len(texts.list); n > maxTexts+1 {
		t.Errorf("the table has %d texts", n)
	}
}
