package drivertest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// testSecret tests that no output shows a token, because it can release the lease.
func testSecret(s *suite) {
	s.test("NoAnswerShowsAToken", func(k *kit) {
		holder, waiter, other := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		var outputs []any
		g := k.a.wantGranted(holder)
		outputs = append(outputs, g, k.b.wantPlace(waiter, 1), k.b.wantHeld(k.mutex()))
		outputs = append(outputs, k.b.renew(other, long), k.b.Release(k.ctx, lease(other)), k.b.entry(k.name))
		if s.canList {
			for e, err := range k.b.Driver.(driver.Lister).List(k.ctx, k.name) {
				outputs = append(outputs, e, err)
			}
		}
		if s.canBreak {
			outputs = append(outputs, k.b.breakLease(g.Fence+uint64(g.Fences), 0, driver.Owner{}))
			k.b.mustBreak(g.Fence, long, driver.Owner{Client: "op"})
			outputs = append(outputs, k.a.renew(holder, long), k.a.Release(k.ctx, lease(holder)), k.b.wantHeld(k.mutex()))
		}
		bad := holder
		bad.TTL = 0
		_, err := k.a.Acquire(k.ctx, bad)
		outputs = append(outputs, err, k.a.Properties())
		for _, v := range outputs {
			k.wantNoToken(v, holder.Token, waiter.Token, other.Token)
		}
	})

	s.test("NoErrorOfAClosedClientShowsAToken", func(k *kit) {
		c := k.mutex()
		d := k.suite.Open(k.T)
		_, _ = d.Acquire(k.ctx, c)
		if err := d.Close(); err != nil {
			k.Fatal(err)
		}
		_, err := d.Acquire(k.ctx, c)
		k.wantNoToken(err, c.Token)
		_, err = d.Renew(k.ctx, []driver.LeaseRef{lease(c)})
		k.wantNoToken(err, c.Token)
		k.wantNoToken(d.Release(k.ctx, lease(c)), c.Token)
	})
}

// wantNoToken requires that v and its causes show no token with any verb, or as JSON.
func (k *kit) wantNoToken(v any, tokens ...driver.Token) {
	k.Helper()
	outputs := []string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		outputs = append(outputs, fmt.Sprintf(verb, v))
	}
	if b, err := json.Marshal(v); err == nil {
		outputs = append(outputs, string(b))
	}
	if err, ok := v.(error); ok {
		for ; err != nil; err = errors.Unwrap(err) {
			outputs = append(outputs, err.Error(), fmt.Sprintf("%#v", err))
		}
	}
	for _, t := range tokens {
		for _, form := range spellings(t) {
			for _, s := range outputs {
				if strings.Contains(s, form) {
					k.Fatalf("the output of a %T shows a token: %s", v, s)
				}
			}
		}
	}
}

// spellings returns forms in which a text may show a token. Half of a token is a secret,
// too.
func spellings(t driver.Token) []string {
	half := t[:len(t)/2]
	var dec, list []string
	for _, b := range half {
		dec = append(dec, strconv.Itoa(int(b)))
		list = append(list, fmt.Sprintf("%#x", b))
	}
	return []string{
		string(half), hex.EncodeToString(half), strings.ToUpper(hex.EncodeToString(half)),
		fmt.Sprintf("% x", half), strings.Join(dec, " "), strings.Join(dec, ", "), strings.Join(dec, ","), strings.Join(list, ", "),
		base64.StdEncoding.EncodeToString(half)[:10], base64.URLEncoding.EncodeToString(half)[:10],
		strings.Trim(strconv.Quote(string(half)), `"`),
	}
}
