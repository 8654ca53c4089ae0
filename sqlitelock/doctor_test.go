package sqlitelock

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestTheDoctorNamesWhatIsSharedByMistake(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows counts no links: run it on another system")
	}
	for _, which := range []string{"", "-wal", "-shm"} {
		path := file(t)
		d := open(t, path, nil)
		if f := finding(t, d, "hard links"); f != nil {
			t.Fatalf("a file with one name: %+v", f)
		}
		if err := os.Link(path+which, path+".other"); err != nil {
			t.Fatal(err)
		}
		f := finding(t, d, "hard links")
		if f == nil || f.Severity != "error" || !strings.Contains(f.Detail, path+which+" has 2 names") {
			t.Errorf("%q with a second name: %+v", which, f)
		}
	}
	for _, which := range []string{"", "-wal", "-shm"} {
		path := file(t)
		d := open(t, path, nil)
		if err := os.Chmod(path+which, 0o666); err != nil { //nolint:gosec // it is the test
			t.Fatal(err)
		}
		if f := finding(t, d, "file mode"); f == nil || !strings.Contains(f.Detail, path+which) {
			t.Errorf("%q that all may write: %+v", which, f)
		}
	}
}
