package redisscript

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scripts are all that are sent.
var scripts = []*Script{Acquire, Force, Renew, Release, Break, Raise, Read, Confirm, Many, rightsScript}

func TestScriptsAreSentAsTheGoldenFilesHaveThem(t *testing.T) {
	for _, s := range scripts {
		golden := filepath.Join("testdata", s.Name+".lua")
		if *update {
			if err := os.WriteFile(golden, []byte(s.Source), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if s.Source != string(want) {
			t.Errorf("%s is not sent as testdata/%s.lua has it; if that is right, run this test with -update", s.Name, s.Name)
		}
	}
}
