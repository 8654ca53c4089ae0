package inbox_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/inbox"
)

var granted, lost, retry = driver.SignalGranted, driver.SignalLost, driver.SignalRetry

func readable(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTheInboxKeepsTheMostUsefulSignal(t *testing.T) {
	for _, c := range []struct {
		signals []driver.SignalKind
		want    driver.SignalKind
	}{
		{[]driver.SignalKind{retry}, retry},
		{[]driver.SignalKind{retry, granted}, granted},
		{[]driver.SignalKind{granted, retry}, granted},
		{[]driver.SignalKind{granted, lost}, lost},
		{[]driver.SignalKind{lost, granted}, lost},
		{[]driver.SignalKind{retry, lost, retry}, lost},
	} {
		for _, before := range []bool{true, false} {
			all, box, token := inbox.New[int](), &inbox.Inbox[int]{}, driver.NewToken()
			all.Add(token, box)
			var arrival <-chan struct{}
			if before {
				arrival = all.Arrival(token, box)
			}
			for _, kind := range c.signals {
				if holds := all.Put(driver.Signal{Kind: kind, Token: token}); len(holds) > 0 {
					t.Error("Put returned a hold before SetHold")
				}
			}
			if !before {
				arrival = all.Arrival(token, box)
			}
			if !readable(arrival) {
				t.Fatalf("%v: Arrival is not readable", c.signals)
			}
			if got := all.Take(token, box).Kind; got != c.want {
				t.Errorf("%v: Take returns %v, want %v", c.signals, got, c.want)
			}
			if readable(arrival) {
				t.Errorf("%v: Arrival is still readable after Take", c.signals)
			}
		}
	}
}

func TestAHoldIsCheckedIfASignalOtherThanGrantedCameBefore(t *testing.T) {
	for _, c := range []struct {
		signals []driver.SignalKind
		taken   bool // the claim took the signal and sent a request
		want    bool
	}{
		{nil, false, false},
		{[]driver.SignalKind{granted}, false, false},
		{[]driver.SignalKind{granted, retry}, false, true},
		{[]driver.SignalKind{lost}, false, true},
		{[]driver.SignalKind{lost}, true, false},
	} {
		all, box, token := inbox.New[int](), &inbox.Inbox[int]{}, driver.NewToken()
		all.Add(token, box)
		for _, kind := range c.signals {
			_ = all.Put(driver.Signal{Kind: kind, Token: token})
		}
		if c.taken {
			<-all.Arrival(token, box)
			_ = all.Take(token, box)
		}
		if got := all.SetHold(token, box, 7); got != c.want {
			t.Errorf("%v: SetHold returns %v", c.signals, got)
		}
		if holds := all.Put(driver.Signal{Kind: lost, Token: token}); !slices.Equal(holds, []int{7}) {
			t.Errorf("%v: Put returns the holds %v, want 7", c.signals, holds)
		}
	}
}

func TestASignalGoesToTheClaimsWithItsToken(t *testing.T) {
	all := inbox.New[int]()
	tokens, boxes := make([]driver.Token, 100), make([]inbox.Inbox[int], 100)
	for i := range boxes {
		tokens[i] = driver.NewToken()
		all.Add(tokens[i], &boxes[i])
	}
	_ = all.Put(driver.Signal{Kind: retry, Token: tokens[3]})
	_ = all.Put(driver.Signal{Kind: retry, Token: driver.NewToken()}) // no claim has this token
	for i := range boxes {
		if got := readable(all.Arrival(tokens[i], &boxes[i])); got != (i == 3) {
			t.Errorf("inbox %d has a signal: %v", i, got)
		}
	}
	_ = all.Take(tokens[3], &boxes[3])
	all.Remove(tokens[4], &boxes[4])
	all.PutAll(driver.Signal{Kind: retry})
	for i := range boxes {
		if got := readable(all.Arrival(tokens[i], &boxes[i])); got != (i != 4) {
			t.Errorf("inbox %d has the signal of PutAll: %v", i, got)
		}
	}
	if n := all.Len(); n != 99 {
		t.Errorf("Len is %d, want 99", n)
	}
}

// A lease that is attached twice has one token and two claims.
func TestEachClaimWithATokenGetsItsSignals(t *testing.T) {
	for _, removed := range [][]int{{0}, {1}, {2}, {0, 2}, {2, 1}, {1, 0, 1}, {0, 1, 2}} {
		all, token := inbox.New[int](), driver.NewToken()
		boxes, want := make([]inbox.Inbox[int], 3), []int{0, 1, 2}
		for i := range boxes {
			all.Add(token, &boxes[i])
			all.Add(token, &boxes[i])
			if all.SetHold(token, &boxes[i], i) {
				t.Error("SetHold returned true before any signal")
			}
		}
		for _, i := range removed {
			all.Remove(token, &boxes[i])
			want = slices.DeleteFunc(want, func(other int) bool { return other == i })
		}
		holds := all.Put(driver.Signal{Kind: lost, Token: token})
		if slices.Sort(holds); !slices.Equal(holds, want) || all.Len() != len(want) {
			t.Errorf("after removing %v, Put returns the holds %v, and Len is %d; want %v", removed, holds, all.Len(), want)
		}
		all.Add(token, &boxes[removed[0]])
		if n := all.Len(); n != len(want)+1 {
			t.Errorf("after adding one again Len is %d, want one more than %d", n, len(want))
		}
	}
}

func TestPutAndTakeMayRunConcurrently(t *testing.T) {
	all, box, token := inbox.New[int](), &inbox.Inbox[int]{}, driver.NewToken()
	all.Add(token, box)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				_ = all.Put(driver.Signal{Kind: retry, Token: token})
			}
		})
	}
	allPut := make(chan struct{})
	go func() { wg.Wait(); close(allPut) }()
	arrival := all.Arrival(token, box)
	for done := false; !done; {
		select {
		case <-arrival:
			_ = all.Take(token, box)
		case <-allPut:
			done = true
		}
	}
}
