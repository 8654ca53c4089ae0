package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// These types are the output of `--json`. Fields may be added, but never change.
type (
	jsonEntry struct {
		Name        string       `json:"name"`
		Known       bool         `json:"known"`         // false: never locked, or deleted since
		Fence       uint64       `json:"fence"`         // the last one granted; 0 if unknown
		ClosedForMS int64        `json:"closed_for_ms"` // how long a break or a lock-delay still keeps it closed
		Holders     []jsonHolder `json:"holders"`
		Waiters     []jsonClaim  `json:"waiters"`               // in the order in which they will be served
		Value       any          `json:"value,omitempty"`       // the name's value, in base64
		ValueFence  uint64       `json:"value_fence,omitempty"` // the fence of the lease that wrote the value
	}
	jsonHolder struct {
		Fence uint64 `json:"fence"`
		jsonClaim
		TTLMS    int64 `json:"ttl_ms"`             // the TTL of the last claim or renewal
		Released bool  `json:"released,omitempty"` // released, and kept for its minimum hold
	}
	jsonClaim struct {
		Kind        string     `json:"kind"`    // "exclusive", "shared" or "permits"
		Permits     int        `json:"permits"` // 0 for exclusive and shared
		Limit       int        `json:"limit"`   // the limit of the permits; 0 for exclusive and shared
		Owner       pawl.Owner `json:"owner"`
		Since       time.Time  `json:"since"`         // on the backend's clock
		ExpiresInMS int64      `json:"expires_in_ms"` // the time left, unless it is renewed
	}
	jsonBroken struct {
		Name        string     `json:"name"`
		Fence       uint64     `json:"fence"`
		Owner       pawl.Owner `json:"owner"` // empty if pawl has not seen the holder
		ClosedForMS int64      `json:"closed_for_ms"`
		By          string     `json:"by"`
		Reason      string     `json:"reason,omitempty"`
	}
	jsonLease struct {
		Name        string `json:"name"`
		Fence       uint64 `json:"fence"`
		Handle      string `json:"handle,omitempty"` // a secret; empty if it is in a file
		ExpiresInMS int64  `json:"expires_in_ms"`    // how long the holder can rely on it
	}
	jsonBench struct {
		Backend   string      `json:"backend"`
		Clients   int         `json:"clients"`
		Cycles    jsonLatency `json:"cycles"`
		Handovers jsonLatency `json:"handovers"` // none with one client
	}
	jsonLatency struct {
		Count     int     `json:"count"`
		PerSecond float64 `json:"per_second"`
		P50MS     float64 `json:"p50_ms"`
		P90MS     float64 `json:"p90_ms"`
		P99MS     float64 `json:"p99_ms"`
		MaxMS     float64 `json:"max_ms"`
	}
)

func printEntryJSON(out io.Writer, e pawl.Entry) error { return printJSONLine(out, entryJSON(&e)) }

func entryJSON(e *pawl.Entry) jsonEntry {
	j := jsonEntry{
		Name: e.Name, Known: isKnown(e), Fence: e.Fence, ClosedForMS: e.ClosedFor.Milliseconds(),
		Holders: []jsonHolder{}, Waiters: []jsonClaim{},
	}
	for _, h := range e.Holders {
		j.Holders = append(j.Holders, jsonHolder{h.Fence, claimJSON(h.Permits, h.Limit, h.Owner, h.Since, h.ExpiresIn), h.TTL.Milliseconds(), h.Released})
	}
	for _, w := range e.Waiters {
		j.Waiters = append(j.Waiters, claimJSON(w.Permits, w.Limit, w.Owner, w.Since, w.ExpiresIn))
	}
	if e.Value != nil {
		j.Value, j.ValueFence = e.Value, e.ValueFence
	}
	return j
}

// withoutCountdowns returns the entry without the parts that change with time alone.
func (j jsonEntry) withoutCountdowns() jsonEntry {
	j.ClosedForMS = min(j.ClosedForMS, 1) // whether it is closed at all
	for i := range j.Holders {
		j.Holders[i].ExpiresInMS = 0
	}
	for i := range j.Waiters {
		j.Waiters[i].ExpiresInMS = 0
	}
	return j
}

func printJSONLine(out io.Writer, value any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := out.Write(escapeControls(buf.Bytes()))
	return err
}

func claimJSON(weight, limit int, o pawl.Owner, since time.Time, expiresIn time.Duration) jsonClaim {
	j := jsonClaim{Kind: string(driver.KindOf(weight, limit)), Owner: ownerJSON(o), Since: since.UTC(), ExpiresInMS: expiresIn.Milliseconds()}
	if j.Kind == string(driver.KindPermits) {
		j.Permits, j.Limit = weight, limit
	}
	return j
}

// ownerKeys returns the keys of an owner, for the help.
func ownerKeys() string {
	var keys []string
	for field := range reflect.TypeFor[pawl.Owner]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return strings.Join(keys, ", ")
}

// ownerJSON returns the owner with an object of labels, even if it has none.
func ownerJSON(o pawl.Owner) pawl.Owner {
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	return o
}

// escapeControls escapes characters that JSON allows, but that control a terminal: DEL,
// the C1 controls, and characters that change the direction of text. They occur only
// inside strings.
func escapeControls(line []byte) []byte {
	safe := make([]byte, 0, len(line))
	for _, r := range string(line) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			safe = append(safe, string(r)...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
	}
	return safe
}
