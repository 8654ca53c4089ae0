package report

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestTheDataHasTheClaims(t *testing.T) {
	claims := []history.Claim{
		{ID: 9, Name: "a", Asked: 0, Answered: 5, Got: 5, Answer: history.Granted, Fence: math.MaxUint64, Believed: 7, Released: 8, Freed: 9, Release: history.OK},
		{ID: 4, Worker: 3, Name: "a", Asked: 100, Answered: 300, Got: 300, Answer: history.Granted, Fence: 2, Believed: 400, Lost: 500, Why: "late"},
		{ID: 7, Name: "b", Asked: 200, Answer: history.Unknown, Died: 250, Error: "gone"},
	}
	m := &testHistory{v: &check.Verdict{}, lines: []history.Line{{Run: &history.Run{}}}}
	for i := range claims {
		m.lines = append(m.lines, history.Line{Claim: &claims[i]})
	}
	s := newStory(m.history())
	var d struct {
		Names  []history.Name
		Texts  []string
		Fields []string
		Claims [][]json.RawMessage
	}
	noError(t, json.Unmarshal(s.data(s.chooseClaims(m.v, maxDrawn), m.v), &d))
	ends := []int64{endReleased, endLost, endAsking}
	fences := []string{"18446744073709551615", "2", ""}
	for i := range claims {
		c, number, fence := &claims[i], map[string]int64{}, ""
		if len(d.Claims[i]) != len(d.Fields) {
			t.Fatalf("claim %d has %d values, want %d", c.ID, len(d.Claims[i]), len(d.Fields))
		}
		for k, key := range d.Fields {
			if key == "fence" {
				noError(t, json.Unmarshal(d.Claims[i][k], &fence))
				continue
			}
			var n int64
			noError(t, json.Unmarshal(d.Claims[i][k], &n))
			number[key] = n
		}
		if d.Names[number["name"]].Name != c.Name || d.Texts[number["why"]] != c.Why || d.Texts[number["problem"]] != c.Error ||
			fence != fences[i] {
			t.Errorf("claim %d has another name, fence or text in the data", c.ID)
		}
		for key, want := range map[string]int64{
			"id": c.ID, "asked": c.Asked, "got": c.Got, "believed": c.Believed, "lost": c.Lost, "released": c.Released, "died": c.Died,
			"worker": int64(c.Worker), "end": ends[i],
		} {
			if number[key] != want {
				t.Errorf("claim %d: %s is %d, want %d", c.ID, key, number[key], want)
			}
		}
	}
}

func TestManyDifferentTexts(t *testing.T) {
	var texts table
	for i := range maxTexts * 2 {
		texts.add(strconv.Itoa(i))
	}
	if n := len(texts.list); n > maxTexts+1 {
		t.Errorf("the table has %d texts, want at most %d", n, maxTexts+1)
	}
}
