package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// seconds is a flag that takes a Go duration (1m30s) or, as flock does, seconds (90, 0.5).
type seconds time.Duration

func (s *seconds) String() string {
	if *s == 0 {
		return "" // pflag shows no default then
	}
	return time.Duration(*s).String()
}

func (*seconds) Type() string { return "duration" }

func (s *seconds) Set(text string) error {
	d, err := parseSeconds(text)
	*s = seconds(d)
	return err
}

func parseSeconds(text string) (time.Duration, error) {
	if positive, negative := strings.CutPrefix(text, "-"); negative {
		if _, err := parseSeconds(positive); err != nil {
			return 0, err
		}
		return 0, errors.New("it is negative")
	}
	if text != "" && strings.Trim(text, "0123456789.") == "" { // no exponents, no "inf"
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f > math.MaxInt64/float64(time.Second) {
			return 0, errors.New("it is no number of seconds that can be")
		}
		d := time.Duration(math.Round(f * float64(time.Second)))
		if d == 0 && f > 0 {
			d = 1 // the smallest wait that can be asked for is not "no wait"
		}
		return d, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("allowed: seconds, as 5 or 0.5, or a duration, as 1m30s or 500ms")
	}
	return d, nil
}

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
		return fmt.Errorf("there are two labels %q", key)
	}
	if *l == nil {
		*l = labels{}
	}
	(*l)[key] = value
	return nil
}
