package postgreslock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const urlForm = "postgres://[USER:PASSWORD@]HOST[:PORT][,HOST...]/DATABASE, with the parameters of libpq and pgx, and " +
	"&schema=NAME, &prefix=NAME, &retention=DURATION, &push=false"

func init() { engine.Register(openURL, "postgres", "postgresql") }

// Open opens the database that a URL names; the package comment has the form. Closing the
// driver closes what was opened. The error is a [*driver.InvalidError] or a
// [*driver.Error], without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (*Driver, error) {
	config, o, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	where := place(config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.Database)
	settled, _ := o.withDefaults() // which were looked at above
	s := &server{where: where, options: &settled}
	pooled, err := behindPooler(ctx, config.ConnConfig)
	if err != nil {
		return nil, opening(ctx, s, err)
	}
	if pooled && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if !pooled { // a pooler may refuse it, or give others a session that was set so
		config.ConnConfig.RuntimeParams["lock_timeout"] = tableWait
	}
	config.BeforeConnect = withoutCancels
	p, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, opening(ctx, s, err)
	}
	d, err := build(pool{p}, o, where, p.Close)
	if err != nil {
		p.Close()
		return nil, err
	}
	d.server.config = config.ConnConfig
	_, free, err := d.server.connect(ctx)
	if err != nil {
		_ = d.Close()
		return nil, opening(ctx, s, err)
	}
	free()
	return d, nil
}

// withoutCancels keeps a connection from asking the server, through a new one, to cancel
// what runs on it when its caller's ctx is over. What waits for a synchronous standby
// then is committed without it, and a fail-over forgets what others were told. And
// PgBouncer 1.18 now and then ends with all its connections when it is asked that
// ("server in bad state"). A statement that goes on to wait for a row does no harm: it
// finds itself late, and see tableWait.
func withoutCancels(_ context.Context, config *pgx.ConnConfig) error {
	var connected atomic.Bool
	dial, after := config.DialFunc, config.AfterConnect
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, addr)
	}
	config.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		connected.Store(true)
		if after != nil {
			return after(ctx, c)
		}
		return nil
	}
	return nil
}

var errNoCancel = errors.New("nothing is cancelled")

// tableWait is how long a session waits for a table that an operator has locked, or wants
// to: nothing cancels that wait, and each that was given up keeps a connection of the
// server's. For a row each step says by itself how long it waits.
const tableWait = "5s"

// opening is the error of an Open.
func opening(ctx context.Context, s *server, err error) error {
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled):
		return ended
	case ended != nil && !errors.Is(err, ended):
		err = fmt.Errorf("%w (%w)", ended, err)
	}
	return s.typed("open", err) // also what took so long
}

// behindPooler reports whether somebody else's process answers than the one that we were
// told at the beginning: a pooler makes that number up.
func behindPooler(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	config = config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	var pid uint32
	err = c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid != c.PgConn().PID(), err
}

// connections is how many a pool has at the most, if the URL does not say.
const connections = 16

// ours are our own parameters; theirs those of libpq, of pgx, and the settings of a
// session that are commonly given there.
var (
	ours   = []string{"schema", "prefix", "retention", "push"}
	theirs = []string{
		"host", "hostaddr", "port", "dbname", "database", "user", "password", "passfile", "require_auth", "channel_binding",
		"connect_timeout", "client_encoding", "options", "application_name", "fallback_application_name", "keepalives",
		"keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "replication", "gssencmode",
		"sslmode", "sslnegotiation", "sslcompression", "sslcert", "sslkey", "sslpassword", "sslcertmode", "sslrootcert",
		"sslcrl", "sslcrldir", "sslsni", "requirepeer", "ssl_min_protocol_version", "ssl_max_protocol_version",
		"min_protocol_version", "max_protocol_version", "krbsrvname", "krbspn", "gsslib", "gssdelegation", "service",
		"servicefile", "target_session_attrs", "load_balance_hosts",

		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
		"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_lifetime_jitter",
		"pool_max_conn_idle_time", "pool_health_check_period",

		"search_path", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "synchronous_commit",
		"timezone", "datestyle", "work_mem", "role",
	}
)

// unknownToPgx are parameters of libpq that pgx would send on to the server.
var unknownToPgx = []string{
	"hostaddr", "client_encoding", "fallback_application_name", "keepalives", "keepalives_idle", "keepalives_interval",
	"keepalives_count", "tcp_user_timeout", "gssencmode", "sslcompression", "sslcertmode", "sslcrl", "sslcrldir",
	"requirepeer", "gsslib", "gssdelegation", "load_balance_hosts",
}

func parseURL(u *url.URL) (*pgxpool.Config, *Options, error) {
	query, err := driver.URLParameters(u, "postgres URL", slices.Concat(ours, theirs))
	if err != nil {
		return nil, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, nil, invalid("has no // after the scheme, or a # in it")
	}
	o := &Options{Schema: query.Get("schema"), Prefix: query.Get("prefix")}
	if v := query.Get("retention"); query.Has("retention") {
		if o.Retention, err = time.ParseDuration(v); err != nil || o.Retention == 0 {
			return nil, nil, invalid("has retention that is no duration, like 24h")
		}
	}
	if query.Has("push") {
		push, err := strconv.ParseBool(query.Get("push"))
		if err != nil {
			return nil, nil, invalid("has push that is neither true nor false")
		}
		o.NoPush = !push
	}
	if _, err := o.withDefaults(); err != nil {
		return nil, nil, err
	}
	if query.Has("lock_timeout") {
		return nil, nil, invalid("has lock_timeout, which would bound no step: each sets its own wait for a locked row, 10 s at most")
	}
	limited := query.Has("pool_max_conns")
	for _, name := range slices.Concat(ours, unknownToPgx) {
		query.Del(name)
	}
	rest := *u
	rest.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // pgx reads a + as such
	config, err := pgxpool.ParseConfig(rest.String())
	if err != nil {
		return nil, nil, invalid(sayable(err, u))
	}
	if config.ConnConfig.ValidateConnect == nil && !query.Has("target_session_attrs") && severalHosts(config.ConnConfig) {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if !limited {
		config.MaxConns = connections
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pawl"
	}
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // what the server says is readable; see text
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	return config, o, nil
}

// severalHosts reports whether there is more than one to connect to: one host may be
// tried twice, with TLS and without.
func severalHosts(config *pgx.ConnConfig) bool {
	return slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != config.Host || f.Port != config.Port
	})
}

// sayable is what pgx has against a URL, if no part of the URL is in it.
func sayable(err error, u *url.URL) string {
	_, said, found := strings.Cut(err.Error(), "`: ")
	password, _ := u.User.Password()
	if !found || strings.Contains(said, "`") || password != "" && strings.Contains(said, password) {
		return "cannot be read"
	}
	return "cannot be read: " + said
}

func invalid(problem string) error {
	return &driver.InvalidError{What: "postgres URL", Problem: problem, Allowed: urlForm}
}
