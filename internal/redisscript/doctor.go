package redisscript

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// Diagnose implements driver.Diagnoser. It examines each server that keeps keys; a
// finding begins with the addresses of its servers. If a server refuses a question, such
// as a managed one that forbids CONFIG, Diagnose returns a finding. It returns an error
// if no server answers.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	x := &examination{d: d, servers: map[driver.Finding][]string{}}
	servers, err := d.conn.nodes(ctx, false)
	if err != nil {
		return nil, d.wrapErr(ctx, "diagnose", "", err)
	}
	answered := false
	for _, s := range servers {
		answered = x.checkServer(ctx, s) || answered
	}
	_, err = d.Inspect(ctx, doctorsName)
	switch {
	case err != nil && (!answered || ctx.Err() != nil || d.closed.Load()):
		return nil, err
	case err != nil:
		x.addFinding("", driver.SeverityError, "locks", "a lock cannot be read: "+err.Error(), "no lock works until this is mended")
	}
	x.checkSentinels(ctx)
	x.checkPush(ctx)
	x.checkTracking(ctx)
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	return x.report(), ctx.Err()
}

// doctorsName is a name that only the doctor of a quorum locks.
const doctorsName = "pawl doctor"

// An examination collects the findings.
type examination struct {
	d             *Driver
	found         []driver.Finding
	servers       map[driver.Finding][]string // the servers that a finding is about
	cannotPublish []string                    // the servers on which the user may not publish
}

// addFinding adds a finding about a server. If several servers have the same finding, the
// report lists it once, with the names of all.
func (x *examination) addFinding(server string, severity driver.Severity, subject, detail, advice string) {
	f := driver.Finding{Severity: severity, Subject: subject, Detail: detail, Advice: advice}
	if !slices.Contains(x.found, f) {
		x.found = append(x.found, f)
	}
	if server != "" {
		x.servers[f] = append(x.servers[f], server)
	}
}

func (x *examination) report() (all []driver.Finding) {
	for _, f := range x.found {
		if servers := x.servers[f]; len(servers) > 0 {
			f.Detail = strings.Join(servers, ", ") + ": " + f.Detail
		}
		all = append(all, f)
	}
	engine.SortFindings(all)
	return all
}

// serverErrorPattern matches errors of the server, and not of the connection.
var serverErrorPattern = regexp.MustCompile(`^[A-Z]+ `) // the space excludes "EOF"

func isServerError(err error) bool { return err != nil && serverErrorPattern.MatchString(err.Error()) }

// checkSentinels asks each Sentinel whether it could replace a dead master.
func (x *examination) checkSentinels(ctx context.Context) {
	group, masters := x.d.client.MasterSet, map[string]bool{}
	for _, s := range x.d.client.Sentinels {
		ctx, cancel := context.WithTimeout(ctx, serverTimeout)
		_, err := s.ask(ctx, "SENTINEL", "CKQUORUM", group)
		switch {
		case isServerError(err):
			x.addFinding(s.Name, driver.SeverityWarning, "Sentinel", "a dead master of "+group+" would not be replaced: "+err.Error(), "start a majority of the Sentinels, and let them reach each other")
		case err != nil:
			x.addFinding(s.Name, driver.SeverityWarning, "Sentinel", "it does not answer: "+err.Error(), "start it: only a majority of the Sentinels can replace a dead master")
		}
		if addr, err := s.ask(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", group); err == nil {
			masters[strings.Join(strings.Fields(addr), ":")] = true
		}
		cancel()
	}
	if len(masters) > 1 {
		x.addFinding("", driver.SeverityError, "Sentinel", fmt.Sprintf("the Sentinels name %d masters of %s, so clients lock on different servers", len(masters), group),
			"wait until a fail-over ends; without a fail-over, examine the Sentinels that disagree")
	}
}
