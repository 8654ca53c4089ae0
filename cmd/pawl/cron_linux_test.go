package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/skip"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// A crontab runs on the machine's own cron, in a namespace in which its folders, its mail
// and its processes are invisible to others. The test sets its clock, so that it need not
// wait for a minute to end.
type crontab struct {
	*lab

	cron *exec.Cmd
}

// startCron starts cron on a crontab, three seconds before a minute. Where this user may
// not make namespaces, the test is skipped. Where cron is missing it fails, if
// PAWL_TEST_REQUIRE is set.
func (b *lab) startCron(minute time.Duration, lines string) *crontab {
	b.t.Helper()
	path, err := exec.LookPath("cron")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/cron")
	}
	if err != nil {
		if os.Getenv("PAWL_TEST_REQUIRE") != "" {
			b.t.Fatalf("cron is missing, and PAWL_TEST_REQUIRE is set: %v", err)
		}
		b.t.Skipf("cron is missing (%v): install it to run this test", err)
	}
	if said, err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		skip.Unproven(b.t, "a cron of its own needs the rights of root, and CAP_SYS_ADMIN: %v: %s", err, said)
	}
	for folder, perm := range map[string]os.FileMode{"crontabs": 0o700, "nothing": 0o755, "sbin": 0o755, "clock": 0o755} {
		if err := os.MkdirAll(b.file(folder), perm); err != nil {
			b.t.Fatal(err)
		}
	}
	// No crontab of the system, but the test's; cron, and a sendmail that keeps its
	// input; no rules of the system about logins.
	b.write("setup", fmt.Sprintf(`set -e; cd %q
		mount -t tmpfs tmpfs /run
		mount --bind crontabs /var/spool/cron/crontabs
		mount --bind nothing /etc/cron.d
		test ! -e /etc/crontab || mount --bind /dev/null /etc/crontab
		test ! -e /etc/pam.d/cron || mount --bind pam /etc/pam.d/cron
		cp %q sbin/cron; mount --bind sbin /usr/sbin
		shift; exec env "$@" /usr/sbin/cron -f`, b.dir, path))
	b.write("pam", "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n")
	b.write("sbin/sendmail", fmt.Sprintf("#!/bin/sh\ncat >> %q\n", b.file("mail")))
	if err := os.Chmod(b.file("sbin/sendmail"), 0o755); err != nil { //nolint:gosec // cron runs it
		b.t.Fatal(err)
	}
	pawl, err := exec.LookPath("pawl")
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("crontabs/root", "PATH="+filepath.Dir(pawl)+":/usr/bin:/bin\nPAWL_URL="+b.url+"\n"+lines+"\n")

	clock, env := timeshift.New(b.t, b.file("clock"))
	now := time.Now()
	clock.Set(now.Truncate(time.Minute).Add(57*time.Second + minute).Sub(now))
	c := &crontab{b, exec.Command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", b.file("setup"), "--"}, env...)...)}
	var said strings.Builder
	c.cron.Stdout, c.cron.Stderr = &said, &said
	c.cron.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cron.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		c.stop()
		if b.t.Failed() {
			b.t.Logf("cron said: %s; mail: %s", said.String(), b.read("mail"))
		}
	})
	return c
}

// stop ends cron, and all processes that it has started.
func (c *crontab) stop() {
	if c.cron.ProcessState == nil {
		_ = c.cron.Process.Kill()
		_ = c.cron.Wait()
	}
}

// Two hosts have the same two lines in their crontabs, so each minute one of them is
// skipped. Cron mails nothing about that, but it does if the backend cannot be reached.
func TestInACrontabOneOfManyRunsAndSkipsAreSilent(t *testing.T) {
	nightly(t, "it runs cron, twice for some seconds")
	b := newLab(t)
	job := fmt.Sprintf(`* * * * * cd %s; pawl run -n -q -E 0 nightly -- sh -c 'echo $PAWL_FENCE >> runs; while ! test -e go; do sleep 0.01; done'; echo $? >> ended`, b.dir)
	down := fmt.Sprintf(`* * * * * cd %s; PAWL_URL='sqlite:%s?create=false' pawl run -n -q -E 0 nightly -- touch never; echo $? >> down`, b.dir, b.file("not-there.db"))
	for minute := range 2 {
		c := b.startCron(time.Duration(minute)*time.Minute, job+"\n"+job+"\n"+down)
		eventually(t, "one has run, the other was skipped", func() bool { return b.read("ended") == "0" && b.read("runs") != "" })
		b.write("go", "")
		eventually(t, "both have ended", func() bool { return b.read("ended") == "0\n0" })
		eventually(t, "there is mail", func() bool { return strings.Contains(b.read("mail"), "not-there.db") })
		if runs := strings.Fields(b.read("runs")); len(runs) != minute+1 {
			t.Errorf("runs by the minute %d: %v", minute+1, runs)
		}
		if got := b.read("down"); got != "69" {
			t.Errorf("the one whose backend is not there ended with %s", got)
		}
		if mail := b.read("mail"); strings.Count(mail, "Subject:") != 1 {
			t.Errorf("cron mailed:\n%s", mail)
		}
		c.stop()
		for _, file := range []string{"go", "ended", "down", "mail"} {
			if err := os.Remove(b.file(file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(b.file("never")); err == nil {
		t.Error("a command ran without the lock")
	}
}
