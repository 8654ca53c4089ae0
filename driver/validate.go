package driver

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of a claim.
const (
	MaxName      = 255 // bytes in a name
	MinTTL       = 10 * time.Millisecond
	MaxTTL       = 30 * 24 * time.Hour // also the longest lock-delay and minimum hold
	MaxFences    = 1 << 16             // fences in one range
	MaxFence     = 1<<53 - 1           // the highest fence that can be asked for: a time in the year 2255
	MaxLabels    = 16                  // labels of one claim
	MaxValue     = 1024                // bytes in the value that a name keeps
	MaxAll       = 64                  // claims of one AcquireAll
	MaxLabelSize = 256                 // bytes in each text of an owner
)

// ValidateName refuses a name that some backend could not store byte for byte, or a
// terminal could not show: a name is 1 to 255 bytes of valid UTF-8 without control
// characters.
func ValidateName(name string) error {
	switch {
	case name == "":
		return invalid("name", "is empty", "1 to 255 bytes")
	case len(name) > MaxName:
		return invalid("name", fmt.Sprintf("has %d bytes", len(name)), "1 to 255 bytes")
	}
	for i := 0; i < len(name); {
		if b := name[i]; b >= ' ' && b < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			return invalid("name", fmt.Sprintf("%q is not UTF-8 at byte %d", name, i), "UTF-8 without control characters")
		}
		if unicode.IsControl(r) {
			return invalid("name", fmt.Sprintf("%q has a control character at byte %d", name, i), "UTF-8 without control characters")
		}
		i += size
	}
	return nil
}

// Validate refuses a claim that a backend could not keep. Its error is an
// [*InvalidError].
func (c *Claim) Validate() error {
	if err := ValidateName(c.Name); err != nil {
		return err
	}
	switch {
	case c.Token.IsZero():
		return invalid("token", "is zero", "128 random bits, from NewToken")
	case c.Limit < 1 || c.Limit > Unlimited:
		return invalid("limit", fmt.Sprintf("is %d", c.Limit), fmt.Sprintf("1 to %d", Unlimited-1))
	case c.Weight < 1 || c.Weight > c.Limit:
		return invalid("weight", fmt.Sprintf("is %d of %d", c.Weight, c.Limit), "1 to the limit")
	case c.Weight > 1 && c.Limit == Unlimited && c.Weight != Exclusive:
		return invalid("weight", fmt.Sprintf("is %d of an unlimited claim", c.Weight), "1 (a reader) or Exclusive")
	case c.Fences < 0 || c.Fences > MaxFences:
		return invalid("fences", fmt.Sprintf("is %d", c.Fences), fmt.Sprintf("0 to %d", MaxFences))
	}
	if err := cmp.Or(ValidateTTL("TTL", c.TTL), ValidateDelay("lock-delay", c.LockDelay)); err != nil {
		return err
	}
	if c.Queue {
		if err := ValidateTTL("queue TTL", c.QueueTTL); err != nil {
			return err
		}
	}
	return cmp.Or(ValidateValue(c.Value), ValidateValue(c.ValueBelow), c.Owner.Validate())
}

// ValidateAll refuses claims that cannot be granted together: no claim or more than
// MaxAll, two claims with the same name or token, an invalid claim, and a claim that
// queues or is forced. Its error is an [*InvalidError].
func ValidateAll(claims []Claim) error {
	if len(claims) < 1 || len(claims) > MaxAll {
		return invalid("claims", fmt.Sprintf("are %d", len(claims)), fmt.Sprintf("1 to %d", MaxAll))
	}
	for i := range claims {
		c := &claims[i]
		if err := c.Validate(); err != nil {
			return err
		}
		if c.Queue || c.Force {
			return invalid("claim", fmt.Sprintf("of %q queues, or is forced", c.Name), "claims of several names that neither queue nor force")
		}
		if slices.ContainsFunc(claims[:i], func(d Claim) bool { return d.Name == c.Name || d.Token == c.Token }) {
			return invalid("claims", fmt.Sprintf("have the name %q or its token twice", c.Name), "each once")
		}
	}
	return nil
}

// ValidateValue refuses a value that is too long. A value may be empty, and have any
// bytes.
func ValidateValue(v []byte) error {
	if len(v) > MaxValue {
		return invalid("value", fmt.Sprintf("has %d bytes", len(v)), fmt.Sprintf("at most %d bytes", MaxValue))
	}
	return nil
}

// ValidateTTL refuses a time to live that is shorter than 10 ms or longer than 30 days.
func ValidateTTL(what string, d time.Duration) error {
	if d < MinTTL || d > MaxTTL {
		return invalid(what, "is "+d.String(), "10ms to "+maxTTL)
	}
	return nil
}

// ValidateDelay refuses a time that is negative or longer than 30 days.
func ValidateDelay(what string, d time.Duration) error {
	if d < 0 || d > MaxTTL {
		return invalid(what, "is "+d.String(), "0 to "+maxTTL)
	}
	return nil
}

// ValidateFence refuses a fence that some backend could not keep exactly.
func ValidateFence(fence uint64) error {
	if fence < 1 || fence > MaxFence {
		return invalid("fence", fmt.Sprintf("is %d", fence), fmt.Sprintf("1 to %d", uint64(MaxFence)))
	}
	return nil
}

const maxTTL = "720h (30 days)"

func invalid(what, problem, allowed string) error {
	return &InvalidError{Argument: what, Problem: problem, Allowed: allowed}
}
