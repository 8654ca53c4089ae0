package postgreslock

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const (
	urlArgument = "postgres URL"
	urlForm     = "postgres://[USER:PASSWORD@]HOST[:PORT][,HOST...]/DATABASE, with the parameters of libpq and pgx, and " +
		"&schema=NAME, &prefix=NAME, &retention=DURATION, &push=false"
)

// ownParameters are Pawl's parameters. libpqParameters are the parameters of libpq and
// pgx, and common settings of a session.
var (
	ownParameters   = []string{"schema", "prefix", "retention", "push"}
	libpqParameters = []string{
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

// unknownToPgx are parameters of libpq that pgx would send to the server as settings.
var unknownToPgx = []string{
	"hostaddr", "client_encoding", "fallback_application_name", "keepalives", "keepalives_idle", "keepalives_interval",
	"keepalives_count", "tcp_user_timeout", "gssencmode", "sslcompression", "sslcertmode", "sslcrl", "sslcrldir",
	"requirepeer", "gsslib", "gssdelegation", "load_balance_hosts",
}

type parsedURL struct {
	config           *pgxpool.Config
	options          *Options // with their defaults
	passwordFromFile bool
}

func parseURL(u *url.URL) (*parsedURL, error) {
	query, err := driver.URLParameters(u, urlArgument, slices.Concat(ownParameters, libpqParameters))
	if err != nil {
		return nil, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, invalid("has a #, or no // after the scheme")
	}
	o, push := Options{Schema: query.Get("schema"), Prefix: query.Get("prefix")}, true
	err = cmp.Or(engine.ReadDuration(query, urlArgument, "retention", "24h", &o.Retention), engine.ReadBool(query, urlArgument, "push", &push))
	if err != nil {
		return nil, err
	}
	o.NoPush = !push
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	if query.Has("lock_timeout") {
		return nil, invalid("has lock_timeout, which would bound no step: each statement sets its own")
	}
	hasMaxConns := query.Has("pool_max_conns")
	for _, name := range slices.Concat(ownParameters, unknownToPgx) {
		query.Del(name)
	}
	pgxURL := *u
	pgxURL.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // pgx reads + literally
	config, err := pgxpool.ParseConfig(pgxURL.String())
	if err != nil {
		return nil, invalid(errTextOf(err, u))
	}
	config.BeforeConnect = rereadFiles(pgxURL.String(), config.ConnConfig)
	if config.ConnConfig.ValidateConnect == nil && !query.Has("target_session_attrs") && severalHosts(config.ConnConfig) {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if !hasMaxConns {
		config.MaxConns = defaultMaxConns
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pawl"
	}
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // for messages only: the function toText converts names
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, 5*time.Second)
	_, inURL := u.User.Password()
	fromFile := config.ConnConfig.Password != "" && !inURL && !query.Has("password") && os.Getenv("PGPASSWORD") == ""
	return &parsedURL{config, &o, fromFile}, nil
}

// rereadFiles returns a function that reads the files of a URL again: certificates,
// authorities, and the password of a passfile, because other programs may replace them.
// If a certificate cannot be read, or there is no password any more, the function uses
// the last one. pgx takes a missing passfile for an empty one.
func rereadFiles(url string, last *pgx.ConnConfig) func(context.Context, *pgx.ConnConfig) error {
	var mu sync.Mutex // protects last
	return func(_ context.Context, c *pgx.ConnConfig) error {
		mu.Lock()
		defer mu.Unlock()
		if now, err := pgx.ParseConfig(url); err == nil && len(now.Fallbacks) == len(c.Fallbacks) {
			now.Password = cmp.Or(now.Password, last.Password)
			last = now
		}
		own := last.Copy()
		c.TLSConfig, c.Password, c.Fallbacks = own.TLSConfig, own.Password, own.Fallbacks
		return nil
	}
}

// severalHosts reports whether there is more than one server to connect to. pgx lists a
// single host twice, to try it with TLS and without.
func severalHosts(config *pgx.ConnConfig) bool {
	return slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != config.Host || f.Port != config.Port
	})
}

// errTextOf returns the text of pgx's error about a URL, without any part of the URL.
func errTextOf(err error, u *url.URL) string {
	_, text, found := strings.Cut(err.Error(), "`: ")
	password, _ := u.User.Password()
	if !found || strings.Contains(text, "`") || password != "" && strings.Contains(text, password) {
		return "cannot be read"
	}
	return "cannot be read: " + text
}

func invalid(problem string) error {
	return &driver.InvalidError{Argument: urlArgument, Problem: problem, Allowed: urlForm}
}
