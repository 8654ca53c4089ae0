package engine

import (
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Found is one finding of a doctor, as a list: to be returned, or appended to others.
func Found(severity driver.Severity, subject, detail, advice string) []driver.Finding {
	return []driver.Finding{{Severity: severity, Subject: subject, Detail: detail, Advice: advice}}
}

// SortFindings puts errors first, then warnings.
func SortFindings(found []driver.Finding) {
	rank := func(f driver.Finding) int {
		return slices.Index([]driver.Severity{driver.SeverityError, driver.SeverityWarning, driver.SeverityInfo}, f.Severity)
	}
	slices.SortStableFunc(found, func(a, b driver.Finding) int { return rank(a) - rank(b) })
}
