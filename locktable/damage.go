package locktable

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/access"
)

// maxDamagedNames is the number of damaged entries whose names the doctor shows. It only
// counts the others.
const maxDamagedNames = 5

// Damaged returns the findings of a backend's doctor about entries that cannot be read.
// It reads all entries, or only those of the namespace that ctx carries.
func Damaged(ctx context.Context, d driver.Lister) []driver.Finding {
	var names string
	var first error
	n := 0
	for e, err := range d.List(ctx, access.Prefix(ctx)) {
		switch {
		case err == nil:
			continue
		case e.Name == "":
			hint, cause := hintAndCause(err)
			return []driver.Finding{{
				Severity: driver.SeverityError, Subject: "entries", Detail: "they cannot be read: " + cause.Error(),
				Advice: cmp.Or(hint, "no lock works until they can be read"),
			}}
		}
		if n++; n <= maxDamagedNames {
			names += fmt.Sprintf(", %.80q", e.Name)
		}
		first = cmp.Or(first, err)
	}
	switch {
	case n == 0:
		return nil
	case n > maxDamagedNames:
		names += fmt.Sprintf(" and %d more", n-maxDamagedNames)
	}
	hint, cause := hintAndCause(first)
	return []driver.Finding{{
		Severity: driver.SeverityError, Subject: "damaged entries",
		Detail: fmt.Sprintf("%d cannot be read, and these names cannot be locked: %s; %v", n, names[len(", "):], cause),
		Advice: cmp.Or(hint, "repair it, or delete it while no client holds the name"),
	}}
}

// hintAndCause returns the hint of a backend's error, and the error without the operation
// that failed.
func hintAndCause(err error) (hint string, cause error) {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Hint, e.Err
	}
	return "", err
}
