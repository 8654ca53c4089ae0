package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-go/pawl/driver"
)

// These types parse flags. Var gets a pointer to a plain field, converted to such a type.

// seconds is a flag that takes a Go duration (1m30s) or, like flock, seconds (90, 0.5).
type seconds time.Duration

func (s *seconds) String() string {
	if *s == 0 {
		return "" // pflag then shows no default
	}
	return time.Duration(*s).String()
}

func (*seconds) Type() string { return "duration" }

func (s *seconds) Set(text string) error {
	d, err := parseSeconds(text)
	*s = seconds(d)
	return err
}

// A breakDelay is the flag --delay: the Delay of pawl.BreakOptions, so 0 becomes -1.
type breakDelay time.Duration

func (d *breakDelay) String() string { return "" } // its default is no duration

func (*breakDelay) Type() string { return "duration" }

func (d *breakDelay) Set(text string) error {
	given, err := parseSeconds(text)
	*d = breakDelay(cmp.Or(given, -1))
	return err
}

func checkBreakDelay(d time.Duration) error { return driver.ValidateDelay("--delay", max(0, d)) }

func parseSeconds(text string) (time.Duration, error) {
	if positive, negative := strings.CutPrefix(text, "-"); negative {
		if _, err := parseSeconds(positive); err != nil {
			return 0, err
		}
		return 0, errors.New("must not be negative")
	}
	if text != "" && strings.Trim(text, "0123456789.") == "" { // no exponents, no "inf"
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f > math.MaxInt64/float64(time.Second) {
			return 0, errors.New("out of range")
		}
		d := time.Duration(math.Round(f * float64(time.Second)))
		if d == 0 && f > 0 {
			d = 1 // a tiny wait must not become "no wait"
		}
		return d, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("allowed: seconds, like 5 or 0.5, or a duration, like 1m30s or 500ms")
	}
	return d, nil
}

// number is a flag that takes a whole number. pflag's own type prints an error of
// strconv.
type number int

func (n *number) String() string { return strconv.Itoa(int(*n)) }

func (*number) Type() string { return "number" }

func (n *number) Set(text string) error {
	i, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("allowed: a whole number")
	}
	*n = number(i)
	return nil
}

type fenceFlag uint64

func (f *fenceFlag) String() string { return strconv.FormatUint(uint64(*f), 10) }

func (*fenceFlag) Type() string { return "fence" }

func (f *fenceFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("allowed: a whole number, as pawl show prints it")
	}
	*f = fenceFlag(n)
	return nil
}

// flagError rewrites pflag's error about a flag. Only boolean flags fail with an error of
// strconv.
func flagError(cmd *cobra.Command, err error) error {
	if problem, _, found := strings.Cut(err.Error(), ": strconv."); found {
		err = errors.New(problem + ": allowed: true or false")
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && cmd.Name() == "run" && slices.Contains(flockOnly, unknown.GetSpecifiedName()) {
		err = fmt.Errorf("%w: it is a flag of flock, but no file descriptor has the lock here; leave it out", err)
	}
	return usageError(cmd, err)
}

// flockOnly has the flags of flock that run does not have.
var flockOnly = []string{"u", "unlock", "o", "close", "F", "no-fork"}

// labels is a repeatable flag of the form key=value.
type labels map[string]string

func (*labels) String() string { return "" }

func (*labels) Type() string { return "key=value" }

func (l *labels) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("allowed: key=value")
	}
	if _, twice := (*l)[key]; twice {
		return fmt.Errorf("label %q is given twice", key)
	}
	if *l == nil {
		*l = labels{}
	}
	(*l)[key] = value
	return nil
}
