package redistest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/basictest"
)

// A BadDay is a state in which a server answers its clients with an error, for a while.
type BadDay struct {
	Name  string
	Args  []string // the arguments of the server
	User  string   // the user of the clients, see UserInfo; it has all rights before Begin
	Begin func(s *Server)
	End   func(s *Server)

	Cause          string // part of the server's error
	Hint           string // part of the hint of the error
	Permanent      bool
	AllowsRenewals bool // leases can be renewed and released
}

const password = "hunter2"

// UserInfo returns the part before the host in the URL of a client: USER:PASSWORD@, or
// nothing.
func (b *BadDay) UserInfo() string {
	if b.User == "" {
		return ""
	}
	return b.User + ":" + password + "@"
}

// Start starts the server in the state before the bad day.
func (b *BadDay) Start(tb TB) *Server {
	tb.Helper()
	s := Start(tb, b.Args...)
	if b.User != "" {
		s.Admin("ACL", "SETUSER", b.User, "on", ">"+password, "~*", "&*", "+@all")
	}
	return s
}

// BadDays are the bad days of a single server.
var BadDays = []BadDay{
	{
		Name:  "a password is set",
		Begin: func(s *Server) { s.Admin("CONFIG", "SET", "requirepass", "sesame"); s.disconnect() },
		End:   func(s *Server) { s.Admin("CONFIG", "SET", "requirepass", "") },
		Cause: "NOAUTH", Hint: "requires a password", Permanent: true,
	},
	{
		Name: "another password is set", User: "joe",
		Begin: func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "resetpass", ">other"); s.disconnect() },
		End:   func(s *Server) { s.Admin("ACL", "SETUSER", "joe", ">"+password) },
		Cause: "WRONGPASS", Hint: "password is wrong", Permanent: true,
	},
	{
		Name: "the user is deleted", User: "joe",
		Begin: func(s *Server) { s.Admin("ACL", "DELUSER", "joe") },
		End:   func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "on", ">"+password, "~*", "&*", "+@all") },
		Cause: "WRONGPASS", Hint: "password is wrong", Permanent: true,
	},
	{
		Name: "the user loses the right to run scripts", User: "joe",
		Begin: func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "-evalsha", "-eval") },
		End:   func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "+@all") },
		Cause: "NOPERM", Hint: "ACL", Permanent: true,
	},
	{
		Name: "the user loses the right to write", User: "joe",
		Begin: func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "-@write") },
		End:   func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "+@all") },
		Cause: "can't run this command", Hint: "ACL", Permanent: true,
	},
	{
		Name: "the user loses the right to the keys", User: "joe",
		Begin: func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "resetkeys", "~other:*") },
		End:   func(s *Server) { s.Admin("ACL", "SETUSER", "joe", "~*") },
		Cause: "NOPERM", Hint: "ACL", Permanent: true,
	},
	{
		Name:  "the master becomes a replica",
		Begin: func(s *Server) { s.Admin("REPLICAOF", "127.0.0.1", "1") },
		End:   func(s *Server) { s.Admin("REPLICAOF", "NO", "ONE") },
		Cause: "READONLY", Hint: "replica",
	},
	{
		Name: "a replica without its master", Args: []string{"--replica-serve-stale-data", "no"},
		Begin: func(s *Server) { s.Admin("REPLICAOF", "127.0.0.1", "1") },
		End:   func(s *Server) { s.Admin("REPLICAOF", "NO", "ONE") },
		Cause: "MASTERDOWN", Hint: "lost its master",
	},
	{
		Name:  "too few replicas",
		Begin: func(s *Server) { s.Admin("CONFIG", "SET", "min-replicas-to-write", "1") },
		End:   func(s *Server) { s.Admin("CONFIG", "SET", "min-replicas-to-write", "0") },
		Cause: "NOREPLICAS", Hint: "min-replicas-to-write",
	},
	{
		Name:  "the data cannot be saved",
		Begin: (*Server).failToSave,
		End:   func(s *Server) { s.Admin("CONFIG", "SET", "save", ""); _ = os.Remove(filepath.Join(s.Dir, "dump.rdb")) },
		Cause: "MISCONF", Hint: "disk",
	},
	{
		Name:  "memory is full",
		Begin: func(s *Server) { s.Admin("CONFIG", "SET", "maxmemory", "1") },
		End:   func(s *Server) { s.Admin("CONFIG", "SET", "maxmemory", "0") },
		Cause: "OOM", Hint: "memory is full", AllowsRenewals: true,
	},
	{
		Name:  "too many clients",
		Begin: func(s *Server) { s.Admin("CONFIG", "SET", "maxclients", "1"); s.disconnect() },
		End:   func(s *Server) { s.Admin("CONFIG", "SET", "maxclients", "1000") },
		Cause: "max number of clients", Hint: "maxclients",
	},
	{
		Name:  "the server restarts and reads its data",
		Begin: (*Server).startLoading,
		End:   (*Server).finishLoading,
		Cause: "LOADING", Hint: "reading its data",
	},
}

// ClusterDown is the bad day of a cluster: one slot has no node.
var ClusterDown = BadDay{
	Name: "a slot of the cluster is lost", Args: []string{"--cluster-enabled", "yes"},
	Begin: func(s *Server) { s.Admin("CLUSTER", "DELSLOTS", "16383"); s.awaitCluster("fail") },
	End:   func(s *Server) { s.Admin("CLUSTER", "ADDSLOTS", "16383"); s.awaitCluster("ok") },
	Cause: "CLUSTERDOWN", Hint: "redis-cli --cluster check",
}

// StartOneNodeCluster starts a cluster of one node.
func StartOneNodeCluster(tb TB) *Server {
	tb.Helper()
	s := ClusterDown.Start(tb)
	s.Admin("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	s.awaitCluster("ok")
	return s
}

// awaitCluster waits until the cluster is in a state.
func (s *Server) awaitCluster(state string) {
	s.TB.Helper()
	basictest.Eventually(s.TB, "the cluster is "+state, func() bool { return Field(s.Admin("CLUSTER", "INFO"), "cluster_state") == state })
}

// disconnect ends all connections except the one of Admin.
func (s *Server) disconnect() {
	for _, kind := range []string{"pubsub", "normal"} {
		s.Admin("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
	}
}

// failToSave makes the server fail to save its data, by a folder with the name of the
// file. The server then refuses writes.
func (s *Server) failToSave() {
	s.TB.Helper()
	noError(s.TB, os.Mkdir(filepath.Join(s.Dir, "dump.rdb"), 0o700))
	s.Admin("CONFIG", "SET", "save", "3600 1")
	s.Admin("BGSAVE")
	basictest.Eventually(s.TB, "saving fails", func() bool { return Field(s.Admin("INFO", "persistence"), "rdb_last_bgsave_status") == "err" })
}

// startLoading restarts the server with additional data, which it reads so slowly that it
// answers LOADING until finishLoading.
func (s *Server) startLoading() {
	s.TB.Helper()
	s.Do("EVAL", "for i = 1, 5000 do redis.call('SET', 'ballast' .. i, string.rep('x', 100)) end return 1", "0")
	s.Do("SAVE")
	s.Kill()
	s.launch("redis-server", append(slices.Clone(s.args),
		"--rdbcompression", "no", "--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")...)
	s.await(func(answer string) bool { return strings.HasPrefix(answer, "-LOADING") })
}

func (s *Server) finishLoading() {
	s.TB.Helper()
	s.Do("CONFIG", "SET", "key-load-delay", "0")
	s.await(func(answer string) bool { return !strings.HasPrefix(answer, "-LOADING") })
}
