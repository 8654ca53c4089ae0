package locktable_test

import (
	"flag"
	"os"
	"testing"
)

// By default the properties try more than rapid's 100 examples, because each costs
// microseconds. A failure is reported with its seed, and writes no file.
func TestMain(m *testing.M) {
	flag.Parse()
	isSet := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "150", "rapid.nofailfile": "true"} {
		if !isSet[name] {
			_ = flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}
