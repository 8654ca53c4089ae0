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

// TestStories runs the stories of testdata. A story is a paragraph: its title, and one
// step a line, with its result after an arrow. "at" is the time of a step since the
// start, and "on" the name of its queue, if not x.
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
				s := &story{T: t, testQueues: newTestQueues(), waiters: map[string]*Waiter[*claimant]{}, holds: map[string]*hold{}}
				for _, line := range lines {
					line, _, _ = strings.Cut(line, "#")
					step, want, _ := strings.Cut(line, "->")
					if words := strings.Fields(step); len(words) > 0 {
						if got, want := s.step(words), strings.TrimSpace(want); got != want {
							t.Errorf("%s: the result is %q, want %q", strings.TrimSpace(step), got, want)
						}
					}
				}
			})
		}
	}
}

type story struct {
	*testing.T
	*testQueues
	waiters map[string]*Waiter[*claimant]
	order   []string // the waiters, in the order of their arrival
	holds   map[string]*hold
}

// step runs one step, and returns its result.
func (s *story) step(words []string) string {
	options, args := map[string]string{}, []string{""}
	for _, word := range words[1:] {
		if key, value, isOption := strings.Cut(word, "="); isOption {
			options[key] = value
		} else {
			args = append(args, word)
		}
	}
	number := func(key string) int { n, _ := strconv.Atoi(options[key]); return n }
	duration := func(key string) time.Duration { d, _ := time.ParseDuration(options[key]); return d }
	now, name, last := start.Add(duration("at")), cmp.Or(options["on"], "x"), args[len(args)-1]
	w, h := s.waiters[last], s.holds[last]
	switch words[0] {
	case "enter": // KIND WHO[:PERSON]...
		for _, arg := range args[2:] {
			who, kind, _ := strings.Cut(arg, ":")
			c := claimOf(args[1], name)
			s.waiters[who] = s.enterClaimant(c, &claimant{kind: cmp.Or(kind, kindOf(c))}, now)
			s.order = append(s.order, who)
		}
	case "asks":
		asking := slices.DeleteFunc(slices.Clone(s.order), func(who string) bool { return !isAsking(s.waiters[who]) })
		return cmp.Or(strings.Join(asking, " "), "nobody")
	case "refused": // WHO...
		for _, who := range args[1:] {
			holder := driver.Holder{Fence: uint64(number("fence")), Owner: driver.Owner{Client: options["by"]}}
			s.waiters[who].RecordHeld(&driver.HeldError{
				Name: name, Position: number("place"), Fence: uint64(number("said")), Holders: number("holders"), Holder: holder,
			}, options["rivals"] != "")
		}
	case "grant", "hold": // WHO..., or a hold of no waiter
		for _, arg := range args[1:] {
			h := &hold{kind: "exclusive", left: number("spare"), lost: options["lost"] != ""}
			s.holds[cmp.Or(options["hold"], arg)] = h
			s.Granted(name, s.waiters[arg], h, h.left, now)
			s.removeWaiter(arg)
		}
	case "pass": // HOLD
		if !s.Pass(name, h, now) {
			return "nobody"
		}
		for _, who := range s.order {
			if w := s.waiters[who]; w.Claim.got == h {
				<-w.Turn()
				s.removeWaiter(who)
				return who
			}
		}
	case "drop": // HOLD
		s.Drop(name, h, now)
	case "spoil": // HOLD
		h.left = 0
	case "leave": // WHO...
		for _, who := range args[1:] {
			if s.removeWaiter(who); s.waiters[who].Leave(now) {
				return "passed"
			}
		}
	case "fail": // WHO
		return w.RecordFailure(now, errNet).Sub(start).String()
	case "faillocal": // WHO
		w.FailLocalWaiters(duration("patience"), errNet, now)
	case "error": // WHO
		<-w.Turn()
		return answerText(w.Err())
	case "reason": // WHO...
		var all []string
		for _, who := range args[1:] {
			all = append(all, answerText(s.waiters[who].WaitReason()))
		}
		return strings.Join(all, ", ")
	case "try": // KIND
		return answerText(s.CheckTry(claimOf(last, name)))
	case "passable": // WHO
		n, all := w.CountPassable(number("most"), func(other *claimant) bool { return other.kind == w.Claim.kind })
		return strconv.Itoa(n) + map[bool]string{true: " all"}[all]
	case "queued":
		if first, ok := s.Queued(name); ok {
			return s.order[slices.IndexFunc(s.order, func(who string) bool { return s.waiters[who].Claim == first })]
		}
		return "nobody"
	case "timer": // fires, even if it was stopped
		x := s.timers[0]
		defer x.f()
		return x.in.String() + map[bool]string{true: " stopped"}[x.stopped]
	case "empty":
		s.wantNoQueues(s.T)
	default:
		s.Fatalf("unknown step %q", words[0])
	}
	return ""
}

// removeWaiter removes a waiter that got a hold, or left, from s.order.
func (s *story) removeWaiter(who string) {
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == who })
}

// claimOf returns a claim: x is exclusive, r a reader, and 2/3 two permits of three.
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

// answerText returns a waiter's error as text.
func answerText(err error) string {
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
