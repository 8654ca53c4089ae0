package locktable

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/driver"
)

// named is how many damaged names a doctor names. The others are counted.
const named = 5

// Damaged is for the doctor of a backend: what there is to find about entries that cannot
// be read. It reads them all.
func Damaged(ctx context.Context, d driver.Lister) []driver.Finding {
	var names string
	var first error
	n := 0
	for e, err := range d.List(ctx, "") {
		switch {
		case err == nil:
			continue
		case e.Name == "":
			return []driver.Finding{{
				Severity: driver.SeverityError, Subject: "entries", Detail: "they cannot be read: " + bare(err).Error(),
				Advice: cmp.Or(hintOf(err), "nothing works until that does"),
			}}
		}
		if n++; n <= named {
			names += fmt.Sprintf(", %.80q", e.Name)
		}
		first = cmp.Or(first, err)
	}
	switch {
	case n == 0:
		return nil
	case n > named:
		names += fmt.Sprintf(" and %d more", n-named)
	}
	return []driver.Finding{{
		Severity: driver.SeverityError, Subject: "damaged entries",
		Detail: fmt.Sprintf("%d cannot be read, and nobody is granted these names: %s; %v", n, names[len(", "):], bare(first)),
		Advice: cmp.Or(hintOf(first), "repair it, or delete it while nobody holds the name"),
	}}
}

// bare is an error of the backend without what was asked of it.
func bare(err error) error {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Err
	}
	return err
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Hint
	}
	return ""
}
