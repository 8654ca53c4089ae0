package driver_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// validClaim returns a valid claim. A test changes one of its fields.
func validClaim() driver.Claim {
	return driver.Claim{
		Name: "job", Token: driver.NewToken(), Owner: driver.Owner{Client: "c", Host: "h", PID: 1},
		Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second,
	}
}

// wantInvalid requires an InvalidError about the field, or no error if field is "".
func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *driver.InvalidError
	switch {
	case field == "" && err != nil:
		t.Errorf("refused: %v", err)
	case field != "" && !errors.As(err, &invalid):
		t.Errorf("the error is %v, want an InvalidError about the %s", err, field)
	case field != "" && (invalid.Argument != field || invalid.Problem == "" || invalid.Allowed == "" || !errors.Is(err, driver.ErrInvalid)):
		t.Errorf("the error is %+v, want the %s, the problem, and the allowed values", *invalid, field)
	}
}

func TestValidateName(t *testing.T) {
	for name, allowed := range map[string]bool{
		"":                            false,
		"a":                           true,
		strings.Repeat("x", 255):      true,
		strings.Repeat("x", 256):      false,
		strings.Repeat("é", 127):      true, // 254 bytes
		strings.Repeat("é", 128):      false,
		" with spaces, {braces}'\"\\": true,
		"naïve/Καφές/名前/🔒":            true,
		"\ufffd":                      true, // the character itself is allowed
		"a\x00b":                      false,
		"\x1b[31m":                    false,
		"latin1\xe9":                  false,
		"\xff":                        false,
		"cut short \xe2\x82":          false,
		"surrogate \xed\xa0\x80":      false,
		"overlong \xc0\x80":           false,
	} {
		field := "name"
		if allowed {
			field = ""
		}
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) { wantInvalid(t, driver.ValidateName(name), field) })
	}
}

func TestEveryControlCharacterIsRefusedAndNothingElse(t *testing.T) {
	for r := range rune(0x300) {
		control := r < 0x20 || r >= 0x7f && r < 0xa0
		if err := driver.ValidateName("a" + string(r)); (err != nil) != control {
			t.Errorf("a name with %U: %v; want it refused: %v", r, err, control)
		}
	}
}

func TestClaimValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *driver.Claim)
		field  string
	}{
		"valid":                         {func(*driver.Claim) {}, ""},
		"no name":                       {func(c *driver.Claim) { c.Name = "" }, "name"},
		"no token":                      {func(c *driver.Claim) { c.Token = driver.Token{} }, "token"},
		"no limit":                      {func(c *driver.Claim) { c.Weight, c.Limit = 1, 0 }, "limit"},
		"negative limit":                {func(c *driver.Claim) { c.Weight, c.Limit = 1, -1 }, "limit"},
		"no weight":                     {func(c *driver.Claim) { c.Weight, c.Limit = 0, 4 }, "weight"},
		"negative weight":               {func(c *driver.Claim) { c.Weight, c.Limit = -1, 4 }, "weight"},
		"reader":                        {func(c *driver.Claim) { c.Weight = 1 }, ""},
		"two without a limit":           {func(c *driver.Claim) { c.Weight = 2 }, "weight"},
		"one less than exclusive":       {func(c *driver.Claim) { c.Weight = driver.Exclusive - 1 }, "weight"},
		"one of one":                    {func(c *driver.Claim) { c.Weight, c.Limit = 1, 1 }, ""},
		"three of four":                 {func(c *driver.Claim) { c.Weight, c.Limit = 3, 4 }, ""},
		"four of four":                  {func(c *driver.Claim) { c.Weight, c.Limit = 4, 4 }, ""},
		"five of four":                  {func(c *driver.Claim) { c.Weight, c.Limit = 5, 4 }, "weight"},
		"exclusive with a limit":        {func(c *driver.Claim) { c.Limit = 4 }, "weight"},
		"the largest semaphore":         {func(c *driver.Claim) { c.Weight, c.Limit = driver.Unlimited-1, driver.Unlimited-1 }, ""},
		"no fences":                     {func(c *driver.Claim) { c.Fences = 0 }, ""},
		"negative fences":               {func(c *driver.Claim) { c.Fences = -1 }, "fences"},
		"the longest range":             {func(c *driver.Claim) { c.Fences = driver.MaxFences }, ""},
		"a longer range":                {func(c *driver.Claim) { c.Fences = driver.MaxFences + 1 }, "fences"},
		"no TTL":                        {func(c *driver.Claim) { c.TTL = 0 }, "TTL"},
		"negative lock-delay":           {func(c *driver.Claim) { c.LockDelay = -1 }, "lock-delay"},
		"the longest lock-delay":        {func(c *driver.Claim) { c.LockDelay = driver.MaxTTL }, ""},
		"a longer lock-delay":           {func(c *driver.Claim) { c.LockDelay = driver.MaxTTL + 1 }, "lock-delay"},
		"queue without a queue TTL":     {func(c *driver.Claim) { c.Queue = true }, "queue TTL"},
		"queue with a short one":        {func(c *driver.Claim) { c.Queue, c.QueueTTL = true, driver.MinTTL-1 }, "queue TTL"},
		"queue with a queue TTL":        {func(c *driver.Claim) { c.Queue, c.QueueTTL = true, driver.MinTTL }, ""},
		"try with an invalid queue TTL": {func(c *driver.Claim) { c.QueueTTL = -5 }, ""},
		"too many labels":               {func(c *driver.Claim) { c.Owner.Labels = labels(17) }, "labels"},
		"an empty value":                {func(c *driver.Claim) { c.Value, c.ValueBelow = []byte{}, []byte{} }, ""},
		"the longest value": {func(c *driver.Claim) {
			c.Value, c.ValueBelow = make([]byte, driver.MaxValue), make([]byte, driver.MaxValue)
		}, ""},
		"a longer value":       {func(c *driver.Claim) { c.Value = make([]byte, driver.MaxValue+1) }, "value"},
		"a longer value below": {func(c *driver.Claim) { c.ValueBelow = make([]byte, driver.MaxValue+1) }, "value"},
		"a negative PID":       {func(c *driver.Claim) { c.Owner.PID = -1 }, "pid"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := validClaim()
			c.change(&claim)
			wantInvalid(t, claim.Validate(), c.field)
		})
	}
}

func labels(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint("key", i)] = "value"
	}
	return m
}

func TestValidateTTL(t *testing.T) {
	for d, allowed := range map[time.Duration]bool{
		-time.Second: false, 0: false, 1: false, 9990 * time.Microsecond: false, 10*time.Millisecond - 1: false,
		10 * time.Millisecond: true, time.Second: true, 30 * 24 * time.Hour: true,
		30*24*time.Hour + 1: false, 1<<63 - 1: false, -1 << 63: false,
	} {
		field := "TTL"
		if allowed {
			field = ""
		}
		t.Run(d.String(), func(t *testing.T) { wantInvalid(t, driver.ValidateTTL("TTL", d), field) })
	}
}

func TestValidateDelay(t *testing.T) {
	for d, allowed := range map[time.Duration]bool{
		-1: false, -1 << 63: false, 0: true, 1: true, 30 * 24 * time.Hour: true, 30*24*time.Hour + 1: false, 1<<63 - 1: false,
	} {
		field := "minimum hold"
		if allowed {
			field = ""
		}
		t.Run(d.String(), func(t *testing.T) { wantInvalid(t, driver.ValidateDelay("minimum hold", d), field) })
	}
}
