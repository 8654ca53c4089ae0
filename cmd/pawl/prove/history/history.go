// Package history is the format of the file that a run of pawl prove writes: one line of
// JSON for each event. It imports nothing of Pawl, so that the checker does not either.
//
// All times are in nanoseconds from the begin of the run, on the monotonic clock of the
// host, which all processes of a run share. A time of 0 means never.
package history

import (
	"slices"
	"time"
)

// Format is the version of the format. Read refuses other versions.
const Format = 2

// A Line is one line of the file. Exactly one of its fields is set.
type Line struct {
	Run    *Run    `json:"run,omitempty"`    // the first line
	Phase  *Phase  `json:"phase,omitempty"`  // written at the end of each phase
	Claim  *Claim  `json:"claim,omitempty"`  // written when the claim is over
	Write  *Write  `json:"write,omitempty"`  // written when the register answers
	Fault  *Fault  `json:"fault,omitempty"`  // written when the fault is over
	Worker *Worker `json:"worker,omitempty"` // written when the process has ended
	Left   *Left   `json:"left,omitempty"`   // written after the last worker has closed
	End    *End    `json:"end,omitempty"`    // the last line; a file without it was cut off
}

// Run describes a run, and how to repeat it.
type Run struct {
	Format  int      `json:"format"`
	Version string   `json:"version"`          // of pawl
	Begun   string   `json:"begun"`            // RFC 3339
	Command string   `json:"command"`          // the command that repeats the run, without a password
	Backend string   `json:"backend"`          // its name and place
	Server  string   `json:"server,omitempty"` // product and version of each server, if known
	Lock    string   `json:"lock"`             // "pawl", or the contender's name
	Seed    uint64   `json:"seed"`
	Workers int      `json:"workers"`
	TTL     int64    `json:"ttl"`               // of each lease
	Faults  []string `json:"faults"`            // the kinds that were chosen
	Planted string   `json:"planted,omitempty"` // the bug that was planted
	Names   []Name   `json:"names"`

	// Forgets means that the server may lose its last writes when it is killed or fails
	// over. Then two holders are possible, as the documentation says.
	Forgets bool `json:"forgets,omitempty"`

	// Ordered means that claims are served first come, first served.
	Ordered bool `json:"ordered,omitempty"`

	// Fenced means that each grant has a fence. Contenders may have none.
	Fenced bool `json:"fenced,omitempty"`
}

// A Name is a lock that the workers share.
type Name struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`  // Mutex, RW, Semaphore or Election
	Limit int    `json:"limit"` // permits of a Semaphore; 1 for the other kinds
}

// The kinds of names.
const (
	Mutex     = "mutex"
	RW        = "rw"
	Semaphore = "semaphore"
	Election  = "election"
)

// A Phase is a part of the run.
type Phase struct {
	Phase string `json:"phase"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

// The phases, in this order.
const (
	Calm   = "calm"   // no faults
	Faults = "faults" // all faults begin and end in it
	Drain  = "drain"  // workers make no new claims, release their leases, and close
)

// A Claim is one attempt to hold one name, with its lease if it was granted.
//
// If Got and Believed are set, the holder is sure of its lease between them: at Believed
// it last saw that the lock held the lease. The lease may last longer.
type Claim struct {
	ID     int64  `json:"id"`     // unique in the run, from 1
	Worker int    `json:"worker"` // from 0
	Life   int    `json:"life"`   // the process of that worker, from 1
	Client int    `json:"client"` // the client in the process, from 0
	Name   string `json:"name"`
	Mode   string `json:"mode"`   // Whole, Shared or Permits
	Weight int    `json:"weight"` // permits; 1 otherwise
	How    string `json:"how"`    // Wait, Try, All or Lead

	// Group is the ID of the first claim of an All, and 0 for other claims.
	Group int64 `json:"group,omitempty"`

	Asked    int64  `json:"asked"`              // before the call that claims
	Answered int64  `json:"answered,omitempty"` // after that call; 0 if the process died first
	Answer   string `json:"answer"`             // Granted, Held, TimedOut or Unknown
	Error    string `json:"error,omitempty"`    // with Held, TimedOut and Unknown

	Got      int64  `json:"got,omitempty"`      // equal to Answered, with Granted
	Fence    uint64 `json:"fence,omitempty"`    // with Granted
	Believed int64  `json:"believed,omitempty"` // before the last call of Err that returned nil
	Lost     int64  `json:"lost,omitempty"`     // after the first call of Err that returned an error
	Woken    int64  `json:"woken,omitempty"`    // after the lock notified the holder of the loss
	Why      string `json:"why,omitempty"`      // with Lost or Woken

	Released int64  `json:"released,omitempty"` // before the call that releases
	Freed    int64  `json:"freed,omitempty"`    // after that call
	Release  string `json:"release,omitempty"`  // OK, Late or Unknown, with Freed

	// Died is set if the process died before the claim was over: at this time or shortly
	// before.
	Died int64 `json:"died,omitempty"`
}

// Last returns the latest of the times of a claim.
func (c *Claim) Last() int64 {
	return max(c.Asked, c.Answered, c.Got, c.Believed, c.Lost, c.Woken, c.Released, c.Freed, c.Died)
}

// The modes of a claim.
const (
	Whole   = "whole"   // no other holder beside it
	Shared  = "shared"  // a reader of an RW
	Permits = "permits" // Weight permits of a Semaphore
)

// The values of How.
const (
	Wait = "wait" // in the queue, until granted or until a deadline
	Try  = "try"  // once
	All  = "all"  // several names together
	Lead = "lead" // as an instance of an election
)

// The answers to a claim, and to a release.
const (
	Granted  = "granted"
	Held     = "held"      // refused, because others hold the name or wait for it
	TimedOut = "timed-out" // the ctx of the wait ended, so the claim holds nothing
	Unknown  = "unknown"   // an error, or the process died: the request may have had an effect
	OK       = "ok"        // released; the lease was held until then
	Late     = "late"      // the lease was over before the release
)

// A Write is the write of a holder that had read a number from the register of its name,
// and now writes that number plus 1. These lines are in the order in which the
// controller, which has the registers, handled the writes. Each name has two registers:
// one checks fences, and one does not.
//
// The register that checks fences refuses reads and writes whose fence is smaller than
// the greatest fence that it has seen.
type Write struct {
	At    int64  `json:"at"`
	Claim int64  `json:"claim"`
	Name  string `json:"name"`
	Fence uint64 `json:"fence"`

	Read     uint64 `json:"read"`     // the number that the holder had read, of the register that checks
	Before   uint64 `json:"before"`   // the number in that register before the write
	Accepted bool   `json:"accepted"` // the register has Read+1 now
	Stale    bool   `json:"stale"`    // refused: the fence is too small

	PlainRead   uint64 `json:"plain_read"`   // as Read, but of the register that does not check
	PlainBefore uint64 `json:"plain_before"` // as Before; an update is lost if it differs from PlainRead
}

// A Fault is a disturbance of a worker, its network or the server, by the controller or
// by the machine.
type Fault struct {
	Kind   string `json:"kind"`
	Worker int    `json:"worker"` // -1: the server
	From   int64  `json:"from"`
	To     int64  `json:"to"`

	// Hit is 0 if the fault had no effect. For a network fault it is the number of pieces
	// of data that it delayed or dropped, or of connections that it cut; otherwise 1.
	Hit int `json:"hit"`
}

// The kinds of faults.
const (
	Stop     = "stop"     // SIGSTOP for longer than the TTL, then SIGCONT
	Kill     = "kill"     // SIGKILL; another process takes the worker's place
	Crash    = "crash"    // the worker ends itself in its section
	Overstay = "overstay" // a holder works on after its lease was lost

	Cut     = "cut"     // all connections of the worker are reset
	Delay   = "delay"   // all data is delayed, by up to twice the TTL
	Reorder = "reorder" // the data of some connections is delayed
	Swallow = "swallow" // requests arrive, replies do not
	Silence = "silence" // the connections stay, and nothing passes in either direction

	ServerStop    = "server-stop"    // SIGSTOP, then SIGCONT
	ServerKill    = "server-kill"    // SIGKILL, then the command starts it again
	ServerRestart = "server-restart" // SIGTERM, then the command starts it again
	FailOver      = "failover"       // the command that fails the server over

	// Pause is not caused by the controller: the machine kept the process from running
	// for at least PauseAtLeast. Worker is -1 for the controller's own process, because
	// the server may run on the same machine.
	Pause = "pause"
)

// The kinds of faults that the controller causes, by their target.
var (
	ProcessFaults = []string{Stop, Kill, Crash, Overstay}
	NetworkFaults = []string{Cut, Delay, Reorder, Swallow, Silence}
	ServerFaults  = []string{ServerStop, ServerKill, ServerRestart, FailOver}
)

// Kinds returns all kinds of faults that the controller causes.
func Kinds() []string { return slices.Concat(ProcessFaults, NetworkFaults, ServerFaults) }

// PauseAtLeast returns the shortest Pause that a run with this TTL records.
func PauseAtLeast(ttl time.Duration) time.Duration {
	return max(50*time.Millisecond, min(250*time.Millisecond, ttl/8))
}

// A Worker is one process of one worker.
type Worker struct {
	Worker int    `json:"worker"`
	Life   int    `json:"life"`
	PID    int    `json:"pid"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	End    string `json:"end"` // "done", "killed", "crashed", or the text of an error
}

// Left has the remaining holders and waiters of a name after all workers have closed and
// all leases have had time to expire.
type Left struct {
	At      int64  `json:"at"`
	Name    string `json:"name"`
	Holders int    `json:"holders"`
	Waiters int    `json:"waiters"`
}

// End is the last line.
type End struct {
	At    int64  `json:"at"`
	Error string `json:"error,omitempty"` // why the run failed

	// Interrupted means that a signal ended the run before its time.
	Interrupted bool `json:"interrupted,omitempty"`
}
