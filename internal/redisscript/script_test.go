package redisscript

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// scripts has all scripts that are sent.
var scripts = []*Script{Acquire, Force, Renew, Release, Break, Raise, Read, Confirm, Watch, Many, States, All, rightsScript}

// sent/ has the scripts as they are sent, so that a diff shows every change of them. They
// are made of lua/: after a change there, run this test with -update.
func TestSentHasTheScriptsOfLua(t *testing.T) {
	for _, s := range scripts {
		made := assembled(s.Name)
		if *update {
			if err := os.WriteFile(filepath.Join("sent", s.Name+".lua"), []byte(made), 0o600); err != nil {
				t.Fatal(err)
			}
			continue // this binary has the old files
		}
		if s.Source != made {
			t.Errorf("sent/%s.lua is not what lua/%s.lua makes: run this test with -update", s.Name, s.Name)
		}
	}
}
