package engine

import (
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Found returns a list of one finding.
func Found(severity driver.Severity, subject, detail, advice string) []driver.Finding {
	return []driver.Finding{{Severity: severity, Subject: subject, Detail: detail, Advice: advice}}
}

// Findings are the results of a Diagnose.
type Findings []driver.Finding

// Add adds a finding if a condition is bad.
func (f *Findings) Add(bad bool, severity driver.Severity, subject, detail, advice string) {
	if bad {
		*f = append(*f, driver.Finding{Severity: severity, Subject: subject, Detail: detail, Advice: advice})
	}
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
