package mongolock

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A member is a proxy for a FerretDB, and imitates the primary of a replica set. If a
// write is sent twice, it makes the write only once. It can give the answers of a failing
// primary, and records all commands.
type member struct {
	addr, serverAddr string
	listener         net.Listener

	mu      sync.Mutex // protects the fields below
	conns   map[net.Conn]bool
	sent    []sentCommand
	plans   []*plan
	answers map[string]bson.D // the answers to retryable writes, by writeID
}

// sentCommand is a command and its answer.
type sentCommand struct {
	name            string
	command, answer bson.D
	repeated        bool // the driver has sent the same write before
}

// A plan changes the handling of one future command.
type plan struct {
	command string              // its name
	before  func()              // called before the server gets the command
	replace bson.D              // the answer; the server does not get the command
	answer  func() bson.D       // returns an answer, like replace
	append  bson.D              // fields to add to the answer
	cut     bool                // ends the connection instead of answering
	matches func(c bson.D) bool // nil matches any command of this name
}

func startMember(t testing.TB, serverAddr string) *member {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	m := &member{addr: l.Addr().String(), serverAddr: serverAddr, listener: l, conns: map[net.Conn]bool{}, answers: map[string]bson.D{}}
	var loops sync.WaitGroup
	loops.Go(func() { m.serve(&loops) })
	t.Cleanup(func() {
		_ = l.Close()
		m.mu.Lock()
		for c := range m.conns {
			_ = c.Close()
		}
		m.mu.Unlock()
		loops.Wait()
	})
	return m
}

// url returns the URL of the replica set.
func (m *member) url(db string) string {
	return "mongodb://" + m.addr + "/" + db + "?replicaSet=rs0&push=false"
}

// addPlans adds plans, each for one command.
func (m *member) addPlans(p ...*plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans = append(m.plans, p...)
}

// takeCommands returns the commands with these names since the last call, except commands
// that store or poll signals.
func (m *member) takeCommands(names ...string) (out []sentCommand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sent {
		if collection, _ := s.command[0].Value.(string); slices.Contains(names, s.name) && (s.name == "aggregate" || collection != signals) {
			out = append(out, s)
		}
	}
	m.sent = nil
	return out
}

func (m *member) serve(loops *sync.WaitGroup) {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.serverAddr)
		if err != nil {
			_ = client.Close()
			continue
		}
		m.mu.Lock()
		m.conns[client] = true
		m.mu.Unlock()
		loops.Go(func() {
			defer func() {
				_, _ = client.Close(), server.Close()
				m.mu.Lock()
				defer m.mu.Unlock()
				delete(m.conns, client)
			}()
			for m.forward(client, server) == nil {
			}
		})
	}
}

// forward forwards one command and its answer.
func (m *member) forward(client, server net.Conn) error {
	request, err := readMessage(client)
	if err != nil {
		return err
	}
	command := commandOf(request)
	p, first := m.takePlan(command), m.firstAnswer(command)
	if p.before != nil {
		p.before()
	}
	answer := p.replace
	if p.answer != nil {
		answer = p.answer()
	}
	switch {
	case answer != nil:
	case first != nil:
		answer = first
	default:
		if answer, err = exchange(server, request); err != nil {
			return err
		}
		m.remember(command, answer)
	}
	if name := command[0].Key; name == "hello" || name == "ismaster" || name == "isMaster" {
		answer = m.asPrimary(answer)
	}
	answer = append(slices.Clip(answer), p.append...)
	m.record(sentCommand{command[0].Key, command, answer, first != nil})
	if p.cut {
		return io.ErrUnexpectedEOF
	}
	_, err = client.Write(replyWith(request, answer))
	return err
}

// takePlan removes the plan for a command from the list, and returns it.
func (m *member) takePlan(command bson.D) *plan {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.plans, func(p *plan) bool {
		return p.command == command[0].Key && (p.matches == nil || p.matches(command))
	})
	if i < 0 {
		return &plan{}
	}
	p := m.plans[i]
	m.plans = slices.Delete(m.plans, i, i+1)
	return p
}

// writeID returns the identity of a retryable write, or "" for other commands.
func writeID(command bson.D) string {
	session, number := field(command, "lsid"), field(command, "txnNumber")
	if session == nil || number == nil {
		return ""
	}
	return fmt.Sprint(session, number)
}

func (m *member) firstAnswer(command bson.D) bson.D {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers[writeID(command)]
}

func (m *member) remember(command, answer bson.D) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := writeID(command); w != "" {
		m.answers[w] = answer
	}
}

func (m *member) record(s sentCommand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, s)
}

// asPrimary turns an answer to "hello" into the answer of a primary.
func (m *member) asPrimary(answer bson.D) bson.D {
	return append(slices.DeleteFunc(slices.Clone(answer), func(e bson.E) bool {
		return e.Key == "ismaster" || e.Key == "isWritablePrimary" || e.Key == "logicalSessionTimeoutMinutes"
	}),
		bson.E{Key: "ismaster", Value: true}, bson.E{Key: "isWritablePrimary", Value: true}, bson.E{Key: "secondary", Value: false},
		bson.E{Key: "setName", Value: "rs0"}, bson.E{Key: "setVersion", Value: int32(1)}, bson.E{Key: "hosts", Value: bson.A{m.addr}},
		bson.E{Key: "primary", Value: m.addr}, bson.E{Key: "me", Value: m.addr}, bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)},
	)
}

// The protocol: mongodb.com/docs/manual/reference/mongodb-wire-protocol
const (
	headerLen = 16 // length, id, id of the request, kind: 4 bytes each
	kindQuery = 2004
	kindReply = 1
)

func readMessage(from io.Reader) ([]byte, error) {
	head := make([]byte, headerLen)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	message := make([]byte, binary.LittleEndian.Uint32(head))
	copy(message, head)
	_, err := io.ReadFull(from, message[headerLen:])
	return message, err
}

func isQuery(m []byte) bool { return binary.LittleEndian.Uint32(m[12:]) == kindQuery }

// commandOf reads a command. A section of documents after it becomes a field.
func commandOf(request []byte) (command bson.D) {
	if isQuery(request) { // flags, the name of a collection, two numbers, the command
		offset := headerLen + 4
		for request[offset] != 0 {
			offset++
		}
		_ = bson.Unmarshal(request[offset+9:], &command)
		return command
	}
	for rest := request[headerLen+4:]; len(rest) > 4; {
		n := 1 + int(binary.LittleEndian.Uint32(rest[1:]))
		section := rest[:n]
		rest = rest[n:]
		if section[0] == 0 {
			_ = bson.Unmarshal(section[1:], &command)
			continue
		}
		end := slices.Index(section[5:], 0) + 5
		var all bson.A
		for documents := section[end+1:]; len(documents) > 4; {
			n := binary.LittleEndian.Uint32(documents)
			var d bson.D
			_ = bson.Unmarshal(documents[:n], &d)
			all, documents = append(all, d), documents[n:]
		}
		command = append(command, bson.E{Key: string(section[5:end]), Value: all})
	}
	return command
}

// exchange forwards a request, and reads the answer.
func exchange(server io.ReadWriter, request []byte) (answer bson.D, err error) {
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	reply, err := readMessage(server)
	if err != nil {
		return nil, err
	}
	offset := headerLen + 5
	if binary.LittleEndian.Uint32(reply[12:]) == kindReply {
		offset = headerLen + 20
	}
	return answer, bson.Unmarshal(reply[offset:], &answer)
}

// replyWith returns the message that answers a request.
func replyWith(request []byte, answer bson.D) []byte {
	body, err := bson.Marshal(answer)
	if err != nil {
		panic(err)
	}
	reply := make([]byte, headerLen+5, headerLen+20+len(body))
	copy(reply[8:12], request[4:8])
	copy(reply[12:16], request[12:16])
	if isQuery(request) {
		reply = reply[:headerLen+20]
		binary.LittleEndian.PutUint32(reply[12:], kindReply)
		binary.LittleEndian.PutUint32(reply[headerLen+16:], 1) // document
	}
	reply = append(reply, body...)
	binary.LittleEndian.PutUint32(reply, uint32(len(reply)))
	return reply
}

// field returns the field of a document at a path, or nil if it is missing.
func field(d bson.D, path ...string) any {
	for _, e := range d {
		if e.Key != path[0] {
			continue
		}
		inner, ok := e.Value.(bson.D)
		if len(path) > 1 && ok {
			return field(inner, path[1:]...)
		}
		return e.Value
	}
	return nil
}

// refusal returns the answer of a server that refuses a command.
func refusal(code int32, name string, labels ...string) bson.D {
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: name}}
	if len(labels) > 0 {
		d = append(d, bson.E{Key: "errorLabels", Value: labels})
	}
	return d
}

// concernError returns the error that a server adds to its answer if it does not know
// that a majority has the write.
func concernError(code int32, name string, labels ...string) bson.D {
	d := bson.D{{Key: "writeConcernError", Value: bson.D{
		{Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: name},
	}}}
	if len(labels) > 0 {
		d = append(d, bson.E{Key: "errorLabels", Value: labels})
	}
	return d
}
