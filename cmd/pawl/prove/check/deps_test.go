package check

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// If the checker shared code with the product, it could share its bugs.
func TestSharesNothingWithTheProduct(t *testing.T) {
	const module = "github.com/pawl-go/pawl"
	own := []string{module + "/cmd/pawl/prove/check", module + "/cmd/pawl/prove/history"}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, own[1]) {
		t.Errorf("go list does not name %s: %q", own[1], packages)
	}
	for _, p := range packages {
		if strings.HasPrefix(p, module) && !slices.Contains(own, p) {
			t.Errorf("the checker depends on %s", p)
		}
	}
}
