package engine

import (
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Found is one finding of a doctor, as a list that can be returned, or appended to
// others.
func Found(severity driver.Severity, subject, detail, advice string) []driver.Finding {
	return []driver.Finding{{Severity: severity, Subject: subject, Detail: detail, Advice: advice}}
}

// FoundIf is Found if a condition is true, and otherwise an empty list.
func FoundIf(bad bool, severity driver.Severity, subject, detail, advice string) []driver.Finding {
	if !bad {
		return nil
	}
	return Found(severity, subject, detail, advice)
}

// Version returns the finding that names the server and its version, such as "Redis
// 7.2.4", or nothing if the version is unknown.
func Version(product, version string) []driver.Finding {
	if version == "" {
		return nil
	}
	return Found(driver.SeverityInfo, "server", product+" "+version, "")
}

// SortFindings puts errors first, then warnings.
func SortFindings(found []driver.Finding) {
	rank := func(f driver.Finding) int {
		return slices.Index([]driver.Severity{driver.SeverityError, driver.SeverityWarning, driver.SeverityInfo}, f.Severity)
	}
	slices.SortStableFunc(found, func(a, b driver.Finding) int { return rank(a) - rank(b) })
}
