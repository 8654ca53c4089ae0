package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/skip"
	"github.com/pawl-go/pawl/internal/testservers"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// A crontab runs on the machine's own cron, in a namespace whose folders, mail and
// processes are invisible to others. The test sets the clock of cron, so that it need not
// wait for a minute to end.
type crontab struct {
	*lab

	host string // its host name, and the folder of its files in the lab
	cron *exec.Cmd
}

func (c *crontab) file(name string) string { return c.lab.file(filepath.Join(c.host, name)) }

func (c *crontab) read(name string) string { return c.lab.read(filepath.Join(c.host, name)) }

func (c *crontab) write(name, text string) {
	c.t.Helper()
	c.lab.write(filepath.Join(c.host, name), text)
}

// startCron starts cron on a crontab of a host. Cron and its jobs, except pawl, see
// clockTime as the current time. If this user may not make namespaces, the test is
// skipped. If cron is missing, it is skipped, or fails if PAWL_TEST_REQUIRE is set.
func (b *lab) startCron(host string, clockTime time.Time, lines string) *crontab {
	b.t.Helper()
	path := testservers.Command(b.t, "cron", "cron", "/usr/sbin/cron")
	b.skipWithoutNamespaces()
	c := &crontab{lab: b, host: host}
	for folder, perm := range map[string]os.FileMode{"crontabs": 0o700, "nothing": 0o755, "sbin": 0o755, "clock": 0o755} {
		noError(b.t, os.MkdirAll(c.file(folder), perm))
	}
	// Replace the system's crontabs by the test's, sendmail by one that keeps its input,
	// and the system's rules about logins.
	c.write("setup", fmt.Sprintf(`set -e; cd %q
		hostname %s
		mount -t tmpfs tmpfs /run
		mount --bind crontabs /var/spool/cron/crontabs
		mount --bind nothing /etc/cron.d
		test ! -e /etc/crontab || mount --bind /dev/null /etc/crontab
		test ! -e /etc/pam.d/cron || mount --bind pam /etc/pam.d/cron
		cp %q sbin/cron; mount --bind sbin /usr/sbin
		shift; exec env "$@" /usr/sbin/cron -f`, c.file(""), host, path))
	c.write("pam", "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n")
	c.write("sbin/sendmail", fmt.Sprintf("#!/bin/sh\ncat >> %q\n", c.file("mail")))
	noError(b.t, os.Chmod(c.file("sbin/sendmail"), 0o755)) //nolint:gosec // cron runs it
	pawl := mustGet(exec.LookPath("pawl"))(b.t)
	clock, env := timeshift.New(b.t, c.file("clock"))
	c.write("crontabs/root", "PATH="+filepath.Dir(pawl)+":/usr/bin:/bin\nPAWL_URL="+b.url+"\n"+strings.Join(env, "\n")+"\n"+lines+"\n")
	clock.Set(time.Until(clockTime))
	c.cron = exec.Command("unshare", append(isolationArgs("sh", c.file("setup"), "--", "TZ="+centralEurope), env...)...)
	var output strings.Builder
	c.cron.Stdout, c.cron.Stderr = &output, &output
	c.cron.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	noError(b.t, c.cron.Start())
	b.t.Cleanup(func() {
		c.stop()
		if b.t.Failed() {
			b.t.Logf("cron printed: %s; mail: %s", output.String(), c.read("mail"))
		}
	})
	return c
}

// centralEurope is a time zone with summer time.
const centralEurope = "CET-1CEST,M3.5.0,M10.5.0/3"

// isolationArgs returns the arguments of unshare that run a command as on its own host.
func isolationArgs(command ...string) []string {
	return append([]string{"--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"}, command...)
}

// skipWithoutNamespaces skips the test if this user may not make namespaces.
func (b *lab) skipWithoutNamespaces() {
	b.t.Helper()
	if output, err := exec.Command("unshare", isolationArgs("true")...).CombinedOutput(); err != nil {
		skip.Unproven(b.t, "a host of its own needs the rights of root, and CAP_SYS_ADMIN: %v: %s", err, output)
	}
}

// stop ends cron, and all processes that it has started.
func (c *crontab) stop() {
	if c.cron.ProcessState == nil {
		_ = c.cron.Process.Kill()
		_ = c.cron.Wait()
	}
}

// Three hosts, whose clocks differ by a second each, have the same lines in their
// crontabs. Their starts straddle the end of a minute, an hour and a day, and the
// beginning and the end of summer time. Each time one of them runs each line, and cron
// mails nothing.
func TestOneOfManyHostsRunsACrontabLine(t *testing.T) {
	skipIfShort(t, "it runs three crons for a minute")
	const every = 12 * time.Second // half of it is shorter than the time between two boundaries
	for backend, url := range cronBackends {
		t.Run(backend, func(t *testing.T) {
			b := newLab(t)
			b.url = url(t, b)
			lines := fmt.Sprintf(`* * * * * cd %s; read -r up _ < /proc/uptime; echo $up >> starts; pawl once --every %v every -- sh -c 'echo $PAWL_KEY >> every'; echo $? >> ended
* * * * * cd %[1]s; pawl once --at-least-once key "$(date -u +\%%FT\%%R)" -- sh -c 'echo $PAWL_KEY >> key'; echo $? >> ended
30 2 * * * cd %[1]s; pawl once --every 24h skipped -- sh -c 'date >> skipped'; echo $? >> ended`, b.dir, every)
			for _, boundary := range []string{ // the local time of the first is 12:07
				"2026-03-02T11:07:00Z", "2026-03-02T12:00:00Z", "2026-03-02T23:00:00Z", "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z",
			} {
				at := mustGet(time.Parse(time.RFC3339, boundary))(t)
				runs := 6
				if boundary == "2026-03-29T01:00:00Z" {
					runs = 9 // cron also runs the line of the skipped hour
				}
				var hosts []*crontab
				for i := range 3 {
					hosts = append(hosts, b.startCron(fmt.Sprintf("host%d", i), at.Add(-time.Duration(6+i)*time.Second), lines))
				}
				eventually(t, boundary+": all have ended", func() bool { return strings.Count(b.read("ended"), "\n") == runs-1 })
				b.checkCron(boundary, every, hosts)
			}
			if got := b.read("skipped"); got == "" || strings.Contains(got, "\n") {
				t.Errorf("the line of the hour that summer time skips ran at %q, want once", got)
			}
		})
	}
}

var cronBackends = map[string]func(*testing.T, *lab) string{
	"SQLite": func(_ *testing.T, b *lab) string { return b.url },
	"Redis":  func(t *testing.T, _ *lab) string { return "redis://" + redistest.Start(t).Addr },
}

// checkCron ends the hosts, and fails the test if a line ran on none of them, or on more
// than one.
func (b *lab) checkCron(boundary string, every time.Duration, hosts []*crontab) {
	b.t.Helper()
	for _, c := range hosts {
		c.stop()
		if mail := c.read("mail"); mail != "" {
			b.t.Errorf("%s: cron of %s mailed:\n%s", boundary, c.host, mail)
		}
	}
	var first, last float64
	for line := range strings.FieldsSeq(b.read("starts")) {
		at := mustGet(strconv.ParseFloat(line, 64))(b.t)
		if first == 0 {
			first = at
		}
		first, last = min(first, at), max(last, at)
	}
	if last-first >= every.Seconds()/2-1 {
		skip.Unproven(b.t, "the hosts started %.1f s apart: the machine is too slow for --every %v", last-first, every)
	}
	if got := b.read("ended"); strings.Trim(got, "0\n") != "" {
		b.t.Errorf("%s: the exit codes are %q, want 0", boundary, got)
	}
	if got := b.read("every"); got == "" || strings.Contains(got, "\n") {
		b.t.Errorf("%s: the line with --every ran at %q, want once", boundary, got)
	}
	if got := b.read("key"); got != strings.TrimSuffix(boundary, ":00Z") {
		b.t.Errorf("%s: the line with KEY ran for %q, want once", boundary, got)
	}
	for _, file := range []string{"starts", "ended", "every", "key"} {
		_ = os.Remove(b.file(file))
	}
}

// The lines for crontabs in the help and in the documents work in a crontab.
func TestTheCrontabExamplesWork(t *testing.T) {
	skipIfShort(t, "it runs cron for some seconds")
	b := newLab(t)
	texts := document(t, "docs/cli.md")
	for _, c := range newRoot(&output{}).Commands() {
		texts += "\n" + c.Example
	}
	var lines []string
	for i, found := range regexp.MustCompile(`(?m)^ *[*0-9/]+(?: [*0-9/]+){4} +(pawl .* -- )\S+$`).FindAllStringSubmatch(texts, -1) {
		lines = append(lines, fmt.Sprintf("* * * * * cd %s; %stouch ran-%d", b.dir, strings.Replace(found[1], " nightly ", fmt.Sprintf(" nightly%d ", i), 1), i))
	}
	if len(lines) != 4 {
		t.Fatalf("the examples are %q", lines)
	}
	c := b.startCron("host", time.Now().Truncate(time.Minute).Add(57*time.Second), strings.Join(lines, "\n"))
	eventually(t, "all have run", func() bool {
		ran, err := filepath.Glob(b.file("ran-*"))
		return err == nil && len(ran) == len(lines)
	})
	c.stop()
	if mail := c.read("mail"); mail != "" {
		t.Errorf("cron mailed:\n%s", mail)
	}
}
