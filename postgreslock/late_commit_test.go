package postgreslock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/skip"
)

// A caller gives up its claim after the statement has changed the row, before the server
// commits. The release waits for the commit, so that no lease stays behind.
func TestAClaimWhoseCommitComesLateIsReleased(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, earlier, c := openDriver(t, url), mutex("job"), mutex("job")
	gets(t, d, earlier)
	releases(t, d, earlier)
	exec(t, conn(t, url), "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0"+
		" AS $$BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END$$",
		"CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON pawl.locks DEFERRABLE INITIALLY DEFERRED"+
			" FOR EACH ROW WHEN (NEW.holders <> '') EXECUTE FUNCTION late()")
	operator, observer := begin(t, conn(t, url)), conn(t, url)
	must(operator.Exec(ctx, "SELECT pg_advisory_xact_lock(1)"))(t)
	callerCtx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	answered, released := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := d.Acquire(callerCtx, c)
		answered <- err
	}()
	eventually(t, "the commit of the claim waits", func() bool { return countWaiting(t, observer, 0) == 1 })
	giveUp()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want context.Canceled", err)
	}
	go func() { released <- d.Release(ctx, lease(c)) }()
	eventually(t, "the release waits for the row", func() bool { return len(released) > 0 || countWaiting(t, observer, 0) == 2 })
	if len(released) > 0 {
		t.Fatalf("Release returned %v before the claim was committed", <-released)
	}
	noError(t, operator.Rollback(ctx))
	if err := <-released; err != nil {
		t.Errorf("Release: %v", err)
	}
	gets(t, openDriver(t, url), mutex("job"))
}

// A statement can fail at its commit, after the server has sent the rows. The driver must
// not count its renewals as done.
func TestRenewalsWhoseCommitFailsDoNotCountAsDone(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	var leases []driver.LeaseRef
	for _, name := range []string{"job 1", "job 2"} {
		c := mutex(name)
		gets(t, d, c)
		c.TTL *= 2 // so that a renewal has something to write
		leases = append(leases, lease(c))
	}
	operator := conn(t, url)
	exec(t, operator, "CREATE SEQUENCE refusals", "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"+
		" AS $$BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'could not serialize' USING ERRCODE = 'serialization_failure'; END$$",
		"CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON pawl.locks DEFERRABLE INITIALLY DEFERRED"+
			" FOR EACH ROW EXECUTE FUNCTION refuse()")
	shortCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answers, err := d.Renew(shortCtx, leases)
	var refused bool
	noError(t, operator.QueryRow(ctx, "SELECT is_called FROM refusals").Scan(&refused))
	if !refused {
		skip.Unproven(t, "no commit failed: %v", err)
	}
	if err != nil {
		return // the error of the call says that neither is renewed
	}
	for i, answer := range answers {
		if !errors.Is(answer, driver.ErrUnavailable) {
			t.Errorf("%s: %v; want ErrUnavailable", leases[i].Name, answer)
		}
	}
}
