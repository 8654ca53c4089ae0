package etcdlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// startWithUsers starts a server with three users: root may do anything, app may write
// locks, and the third one has no rights. All have the same password.
func startWithUsers(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	c := etcdtest.Start(t, 1)
	admin := client(t, c.Addrs()...)
	must := func(err error) {
		t.Helper()
		noError(t, err)
	}
	for _, name := range []string{"root", "app", "nobody"} {
		_, err := admin.UserAdd(brief(t), name, "hunter2")
		must(err)
		_, err = admin.RoleAdd(brief(t), name)
		must(err)
		_, err = admin.UserGrantRole(brief(t), name, name)
		must(err)
	}
	_, err := admin.RoleGrantPermission(brief(t), "app", "locks//", clientv3.GetPrefixRangeEnd("locks//"), clientv3.PermissionType(clientv3.PermReadWrite))
	must(err)
	_, err = admin.AuthEnable(brief(t))
	must(err)
	return c
}

func TestUsersAndTheirRights(t *testing.T) {
	t.Parallel()
	c := startWithUsers(t)
	hostAndPrefix := "@" + c.Members[0].Addr + "/locks"
	d := openDriver(t, "etcd://app:hunter2"+hostAndPrefix)
	holder := mutex("job")
	gets(t, d, holder)
	keeps(t, d, holder)
	releases(t, d, holder)
	wantFindings(t, d, "of a user with all rights", "info members")
	for url, hint := range map[string]string{
		"etcd://app:hunter3" + hostAndPrefix:               "password",
		"etcd://nobody:hunter2" + hostAndPrefix:            "grant-permission",
		"etcd://" + c.Members[0].Addr + "/locks":           "USER:PASSWORD@",
		"etcd://app:hunter2" + hostAndPrefix + "elsewhere": "grant-permission",
		"etcd://somebody:hunter2" + hostAndPrefix:          "password",
	} {
		_, err := etcdlock.Open(brief(t), url)
		e, ok := errors.AsType[*driver.Error](err)
		if !ok || !strings.Contains(e.Hint, hint) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v; want a hint with %q, and no password", url, err, hint)
		}
	}
}

// wantFindings waits for these findings of the doctor. On a slow machine a member may not
// answer in time, so wantFindings runs the doctor again.
func wantFindings(t *testing.T, d *etcdlock.Driver, what, want string) {
	t.Helper()
	until(t, what, func() error {
		if found := diagnose(t, d); found != want {
			return fmt.Errorf("the doctor finds %q; want %q", found, want)
		}
		return nil
	})
}

// diagnose returns the severities and subjects of the doctor's findings.
func diagnose(t *testing.T, d *etcdlock.Driver) string {
	t.Helper()
	found, err := d.Diagnose(brief(t)) // long enough for an election
	if err != nil {
		return err.Error()
	}
	var short []string
	for _, f := range found {
		if f.Advice == "" { // the server's version
			continue
		}
		short = append(short, string(f.Severity)+" "+f.Subject)
	}
	return strings.Join(short, ", ")
}

// The doctor names a value that an operator wrote, and the list still shows the others.
func TestTheDoctorAndTheListNameADamagedEntry(t *testing.T) {
	t.Parallel()
	url, prefix, c := ownPrefix(t)
	servertest.Damaged(t, openDriver(t, url), openDriver(t, url), "", func(name string) {
		must(client(t, c.Addrs()...).Put(brief(t), prefix+"//entry/"+name, "free"))(t)
	})
}

// A password that the cluster does not require protects nothing.
func TestTheDoctorFindsAPasswordThatIsNotRequired(t *testing.T) {
	t.Parallel()
	_, prefix, c := ownPrefix(t)
	d := openDriver(t, "etcd://joe:hunter2@"+c.Members[0].Addr+"/"+prefix)
	wantFindings(t, d, "of one server", "warning authentication, info members")
}

func TestTheDoctorFindsAMemberThatIsDown(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 3)
	d := openDriver(t, c.URL())
	wantFindings(t, d, "of three members", "")
	wantFindings(t, openDriver(t, "etcd://"+c.Members[0].Addr), "of one of three members", "info endpoints")
	c.Members[2].Kill()
	wantFindings(t, d, "of two of three members", "warning member "+c.Members[2].Addr)
}
