package redislock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// sender sends the scripts through rueidis. It is a redisscript.Sender.
type sender struct {
	client rueidis.Client
	push   rueidis.Client // for what the server pushes: the same client, or one of its own
	where  string
	close  func()

	user      string     // empty means the default user
	password  bool       // the URL has a password; false if the client is the caller's
	dialed    *dialer    // set only if the driver makes all connections for commands itself, to one server
	sentinels *sentinels // nil if there are none, or the client is the caller's
}

// Run implements redisscript.Sender. Unless a command is read-only, rueidis sends it only
// once, whatever its retry options say.
func (s *sender) Run(ctx context.Context, script *redisscript.Script, c redisscript.Call) redisscript.Reply {
	cmd := s.client.B().Evalsha().Sha1(script.SHA).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
	r := s.client.Do(ctx, cmd)
	if unknown(r) {
		r = s.client.Do(ctx, s.eval(script, c))
	}
	return reply(r)
}

// RunAside implements redisscript.Aside. rueidis takes a connection from its pool for a
// command that may block, and reads the answer in this goroutine.
func (s *sender) RunAside(ctx context.Context, script *redisscript.Script, c redisscript.Call) redisscript.Reply {
	n := strconv.Itoa(len(c.Keys))
	r := s.client.Do(ctx, s.client.B().Arbitrary("EVALSHA", script.SHA, n).Keys(c.Keys...).Args(c.Args...).Blocking())
	if unknown(r) {
		r = s.client.Do(ctx, s.eval(script, c))
	}
	return reply(r)
}

// RunAll implements redisscript.Sender. rueidis keeps the order of commands for one node.
func (s *sender) RunAll(ctx context.Context, script *redisscript.Script, calls []redisscript.Call) []redisscript.Reply {
	cmds := make(rueidis.Commands, len(calls))
	for i, c := range calls {
		cmds[i] = s.client.B().Evalsha().Sha1(script.SHA).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
	}
	replies := make([]redisscript.Reply, len(calls))
	for i, r := range s.client.DoMulti(ctx, cmds...) {
		if unknown(r) { // the first one loads the script, and the others find it
			replies[i] = s.Run(ctx, script, calls[i])
		} else {
			replies[i] = reply(r)
		}
	}
	return replies
}

func (s *sender) eval(script *redisscript.Script, c redisscript.Call) rueidis.Completed {
	return s.client.B().Eval().Script(script.Source).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

// unknown reports whether the server does not know the script: it was restarted, or
// another node has taken over.
func unknown(r rueidis.RedisResult) bool {
	err, is := rueidis.IsRedisErr(r.Error())
	return is && err.IsNoScript()
}

func reply(r rueidis.RedisResult) redisscript.Reply {
	m, err := r.ToMessage()
	if err != nil {
		return redisscript.Reply{Err: err}
	}
	if m.IsInt64() {
		n, err := m.ToInt64()
		return redisscript.Reply{Int: n, Err: err}
	}
	if m.IsArray() {
		list, err := m.AsIntSlice()
		return redisscript.Reply{List: list, Err: err}
	}
	text, err := m.ToString()
	if err == nil && text == "" {
		err = errEmpty
	}
	return redisscript.Reply{Text: text, Err: err}
}

var (
	errEmpty       = errors.New("the server answered nothing to a script")
	errUnknownNode = errors.New("the name was moved to a node that is not known yet")
)

// Scan implements redisscript.Sender.
func (s *sender) Scan(ctx context.Context, pattern string, f func(keys []string)) error {
	masters, err := s.masters(ctx)
	if err != nil {
		return err
	}
	for _, node := range masters {
		for cursor := uint64(0); ; {
			page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
			if err != nil {
				return err
			}
			f(page.Elements)
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
	return nil
}

// masters returns the nodes that hold the keys. Outside of a cluster it returns the
// client itself, which with Sentinel leads to the current master.
func (s *sender) masters(ctx context.Context) ([]rueidis.Client, error) {
	if !s.Cluster() {
		return []rueidis.Client{s.client}, nil
	}
	var found []rueidis.Client
	for _, node := range s.client.Nodes() {
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if err != nil {
			return nil, err
		}
		if len(role) > 0 {
			if kind, _ := role[0].ToString(); kind == "master" {
				found = append(found, node)
			}
		}
	}
	return found, nil
}

// Patience implements redisscript.Punctual. If a request is alone on its connection,
// rueidis sets the deadline there, and reads the answer in the caller's goroutine.
func (*sender) Patience() time.Duration { return 0 }

// Interruptible implements redisscript.Interruptible.
func (s *sender) Interruptible() bool { return s.dialed != nil }

// Waiting implements redisscript.Interruptible.
func (s *sender) Waiting() (interrupt func()) { return s.dialed.waiting() }

// Cluster implements redisscript.Sender.
func (s *sender) Cluster() bool { return s.client.Mode() == rueidis.ClientModeCluster }

// Where implements redisscript.Sender.
func (s *sender) Where() string { return s.where }

// Close implements redisscript.Sender.
func (s *sender) Close() error {
	if s.close != nil {
		s.close()
	}
	return nil
}

var _ redisscript.Sender = (*sender)(nil)
