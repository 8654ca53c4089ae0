package localqueue

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// TestStories plays the stories of testdata. A story is a paragraph: its title, and a
// step a line, with what the step answers behind an arrow. "at" is the time of a step
// after the start, and "on" the name of its queue, if that is not x.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			lines := strings.Split(paragraph, "\n")
			t.Run(strings.TrimPrefix(lines[0], "# "), func(t *testing.T) {
				s := &story{T: t, place: newPlace(), who: map[string]*Waiter[*person]{}, holds: map[string]*hold{}}
				for _, line := range lines {
					line, _, _ = strings.Cut(line, "#")
					step, want, _ := strings.Cut(line, "->")
					if words := strings.Fields(step); len(words) > 0 {
						if got, want := s.step(words), strings.TrimSpace(want); got != want {
							t.Errorf("%s: it answers %q, want %q", strings.TrimSpace(step), got, want)
						}
					}
				}
			})
		}
	}
}

type story struct {
	*testing.T
	*place
	who   map[string]*Waiter[*person]
	order []string // those that ask or wait, as they came
	holds map[string]*hold
}

// step does one step, and returns what it answers.
func (s *story) step(words []string) string {
	o, args := map[string]string{}, []string{""}
	for _, word := range words[1:] {
		if key, value, is := strings.Cut(word, "="); is {
			o[key] = value
		} else {
			args = append(args, word)
		}
	}
	number := func(key string) int { n, _ := strconv.Atoi(o[key]); return n }
	span := func(key string) time.Duration { d, _ := time.ParseDuration(o[key]); return d }
	now, name, last := start.Add(span("at")), cmp.Or(o["on"], "x"), args[len(args)-1]
	w, h := s.who[last], s.holds[last]
	switch words[0] {
	case "enter": // KIND WHO[:PERSON]...
		for _, arg := range args[2:] {
			who, kind, _ := strings.Cut(arg, ":")
			c := claimOf(args[1], name)
			s.who[who] = s.come(c, &person{kind: cmp.Or(kind, kindOf(c))}, now)
			s.order = append(s.order, who)
		}
	case "asks":
		asking := slices.DeleteFunc(slices.Clone(s.order), func(who string) bool { return !asks(s.who[who]) })
		return cmp.Or(strings.Join(asking, " "), "nobody")
	case "refused": // WHO...
		for _, who := range args[1:] {
			holder := driver.Holder{Fence: uint64(number("fence")), Owner: driver.Owner{Client: o["by"]}}
			s.who[who].RecordHeld(&driver.HeldError{
				Name: name, Position: number("place"), Fence: uint64(number("said")), Holders: number("holders"), Holder: holder,
			}, o["rivals"] != "")
		}
	case "grant", "hold": // WHO..., or a hold of no waiter
		for _, arg := range args[1:] {
			h := &hold{kind: "exclusive", left: number("spare"), lost: o["lost"] != ""}
			s.holds[cmp.Or(o["hold"], arg)] = h
			s.Granted(name, s.who[arg], h, h.left, now)
			s.out(arg)
		}
	case "pass": // HOLD
		if !s.Pass(name, h, now) {
			return "nobody"
		}
		for _, who := range s.order {
			if w := s.who[who]; w.Claim.got == h {
				<-w.Turn()
				s.out(who)
				return who
			}
		}
	case "drop": // HOLD
		s.Drop(name, h, now)
	case "spoil": // HOLD
		h.left = 0
	case "leave": // WHO...
		for _, who := range args[1:] {
			if s.out(who); s.who[who].Leave(now) {
				return "passed"
			}
		}
	case "fail": // WHO
		return w.RecordFailure(now, errNet).Sub(start).String()
	case "failothers": // WHO
		w.FailLocalWaiters(span("patience"), errNet, now)
	case "error": // WHO
		<-w.Turn()
		return said(w.Err())
	case "reason": // WHO...
		var all []string
		for _, who := range args[1:] {
			all = append(all, said(s.who[who].WaitReason()))
		}
		return strings.Join(all, ", ")
	case "try": // KIND
		return said(s.CheckTry(claimOf(last, name)))
	case "served": // WHO
		n, all := w.CountPassable(number("most"), func(other *person) bool { return other.kind == w.Claim.kind })
		return strconv.Itoa(n) + map[bool]string{true: " all"}[all]
	case "queued":
		if first, ok := s.Queued(name); ok {
			return s.order[slices.IndexFunc(s.order, func(who string) bool { return s.who[who].Claim == first })]
		}
		return "nobody"
	case "timer": // fires, even if it was stopped
		x := s.timers[0]
		defer x.f()
		return x.in.String() + map[bool]string{true: " stopped"}[x.stopped]
	case "empty":
		s.empty(s.T)
	default:
		s.Fatalf("%q is no step", words[0])
	}
	return ""
}

// out takes one that got a hold, or left, out of those that wait.
func (s *story) out(who string) {
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == who })
}

// claimOf is a claim of a name: x is exclusive, r a reader, and 2/3 two permits of three.
func claimOf(kind, name string) *driver.Claim {
	var k, n int
	switch _, err := fmt.Sscanf(kind, "%d/%d", &k, &n); {
	case err == nil:
		return permits(name, k, n)
	case kind == "r":
		return reader(name)
	}
	return exclusive(name)
}

// said returns the answer that a waiter gets, in a word.
func said(err error) string {
	held, ok := err.(*driver.HeldError)
	switch {
	case err == nil:
		return "nothing"
	case !ok:
		return map[bool]string{true: "failing"}[err == errNet]
	case held.Name != "x":
		return "held under the name " + held.Name
	}
	s := "held"
	if held.Position > 0 {
		s += fmt.Sprint(" place ", held.Position)
	}
	if held.Fence > 0 {
		s += fmt.Sprint(" fence ", held.Fence)
	}
	if held.Holders > 0 {
		s += fmt.Sprintf(" by %s/%d", held.Holder.Owner.Client, held.Holder.Fence)
	}
	if held.Holders > 1 {
		s += fmt.Sprint(" of ", held.Holders)
	}
	return s
}
