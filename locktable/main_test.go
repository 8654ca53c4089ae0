package locktable_test

import (
	"flag"
	"os"
	"testing"
)

// Unless flags say otherwise, the properties try more than rapid's 100 examples, because
// each costs microseconds. A failure is reported with its seed and leaves no file.
func TestMain(m *testing.M) {
	flag.Parse()
	told := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { told[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "150", "rapid.nofailfile": "true"} {
		if !told[name] {
			_ = flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}
