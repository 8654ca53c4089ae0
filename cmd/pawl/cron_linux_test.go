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

	host string // a folder of the lab, for its files
	cron *exec.Cmd
}

func (c *crontab) file(name string) string { return c.lab.file(filepath.Join(c.host, name)) }

func (c *crontab) read(name string) string { return c.lab.read(filepath.Join(c.host, name)) }

func (c *crontab) write(name, text string) {
	c.t.Helper()
	c.lab.write(filepath.Join(c.host, name), text)
}

// startCron starts cron on a crontab of a host, so long before a minute of its clock.
// Where this user may not make namespaces, the test is skipped. Where cron is missing it
// fails, if PAWL_TEST_REQUIRE is set.
func (b *lab) startCron(host string, before, minute time.Duration, lines string) *crontab {
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
	c := &crontab{lab: b, host: host}
	for folder, perm := range map[string]os.FileMode{"crontabs": 0o700, "nothing": 0o755, "sbin": 0o755, "clock": 0o755} {
		if err := os.MkdirAll(c.file(folder), perm); err != nil {
			b.t.Fatal(err)
		}
	}
	// No crontab of the system, but the test's; cron, and a sendmail that keeps its
	// input; no rules of the system about logins.
	c.write("setup", fmt.Sprintf(`set -e; cd %q
		mount -t tmpfs tmpfs /run
		mount --bind crontabs /var/spool/cron/crontabs
		mount --bind nothing /etc/cron.d
		test ! -e /etc/crontab || mount --bind /dev/null /etc/crontab
		test ! -e /etc/pam.d/cron || mount --bind pam /etc/pam.d/cron
		cp %q sbin/cron; mount --bind sbin /usr/sbin
		shift; exec env "$@" /usr/sbin/cron -f`, c.file(""), path))
	c.write("pam", "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n")
	c.write("sbin/sendmail", fmt.Sprintf("#!/bin/sh\ncat >> %q\n", c.file("mail")))
	if err := os.Chmod(c.file("sbin/sendmail"), 0o755); err != nil { //nolint:gosec // cron runs it
		b.t.Fatal(err)
	}
	pawl, err := exec.LookPath("pawl")
	if err != nil {
		b.t.Fatal(err)
	}
	c.write("crontabs/root", "PATH="+filepath.Dir(pawl)+":/usr/bin:/bin\nPAWL_URL="+b.url+"\n"+lines+"\n")

	clock, env := timeshift.New(b.t, c.file("clock"))
	now := time.Now()
	clock.Set(now.Truncate(time.Minute).Add(time.Minute - before + minute).Sub(now))
	c.cron = exec.Command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", c.file("setup"), "--"}, env...)...)
	var said strings.Builder
	c.cron.Stdout, c.cron.Stderr = &said, &said
	c.cron.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cron.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		c.stop()
		if b.t.Failed() {
			b.t.Logf("cron said: %s; mail: %s", said.String(), c.read("mail"))
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
		c := b.startCron("host", 3*time.Second, time.Duration(minute)*time.Minute, job+"\n"+job+"\n"+down)
		eventually(t, "one has run, the other was skipped", func() bool { return b.read("ended") == "0" && b.read("runs") != "" })
		b.write("go", "")
		eventually(t, "both have ended", func() bool { return b.read("ended") == "0\n0" })
		eventually(t, "there is mail", func() bool { return strings.Contains(c.read("mail"), "not-there.db") })
		if runs := strings.Fields(b.read("runs")); len(runs) != minute+1 {
			t.Errorf("runs by the minute %d: %v", minute+1, runs)
		}
		if got := b.read("down"); got != "69" {
			t.Errorf("the one whose backend is not there ended with %s", got)
		}
		if mail := c.read("mail"); strings.Count(mail, "Subject:") != 1 {
			t.Errorf("cron mailed:\n%s", mail)
		}
		c.stop()
		for _, file := range []string{"go", "ended", "down", "host/mail"} {
			if err := os.Remove(b.file(file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(b.file("never")); err == nil {
		t.Error("a command ran without the lock")
	}
}

// Three hosts, whose clocks differ by a second each, have the same lines in their
// crontabs. One of them runs each line, and cron mails nothing.
func TestInACrontabOneOfManyHostsRunsItOnce(t *testing.T) {
	nightly(t, "it runs three crons for some seconds")
	b := newLab(t)
	lines := fmt.Sprintf(`* * * * * cd %s; pawl once --every 24h nightly -- sh -c 'echo $PAWL_KEY >> nightly'; echo $? >> ended
* * * * * cd %[1]s; pawl once --at-least-once yearly "$(date -u +\%%Y)" -- sh -c 'echo $PAWL_KEY >> yearly'; echo $? >> ended`, b.dir)
	var hosts []*crontab
	for i := range 3 {
		hosts = append(hosts, b.startCron(fmt.Sprintf("host%d", i), time.Duration(3+i)*time.Second, 0, lines))
	}
	eventually(t, "all have ended", func() bool { return strings.Count(b.read("ended"), "\n") == 5 })
	if got := b.read("ended"); strings.Trim(got, "0\n") != "" {
		t.Errorf("they ended with %q", got)
	}
	for _, file := range []string{"nightly", "yearly"} {
		if got := b.read(file); got == "" || strings.Contains(got, "\n") {
			t.Errorf("%s ran for %q", file, got)
		}
	}
	for _, c := range hosts {
		if mail := c.read("mail"); mail != "" {
			t.Errorf("cron of %s mailed:\n%s", c.host, mail)
		}
	}
}
