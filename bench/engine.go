package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An engine is a kind of server with its contenders. The first contender is the floor.
type engine struct {
	name       string
	start      func() (server, error)
	url        func(addr string) string // returns the URL that Pawl opens
	contenders func() []contender
	note       func() string // returns a remark about the numbers; nil if there is none
}

var engines = []engine{
	{name: "redis", url: redisURL, start: startRedis, contenders: redisContenders},
	{name: "postgres", url: postgresURL, start: startPostgres, contenders: postgresContenders},
	{name: "mysql", url: mysqlURL, start: startMySQL, contenders: mysqlContenders},
	{name: "etcd", url: etcdURL, start: startEtcd, contenders: etcdContenders},
	{name: "nats", url: natsURL, start: startNATS, contenders: natsContenders},
	{name: "mongo", url: mongoURL, start: startMongo, contenders: mongoContenders, note: mongoNote},
}

func engineNames() (names []string) {
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

func engineOf(name string) (engine, error) {
	i := slices.IndexFunc(engines, func(e engine) bool { return e.name == name })
	if i < 0 {
		return engine{}, fmt.Errorf("no engine %q; the engines are %s", name, strings.Join(engineNames(), ", "))
	}
	return engines[i], nil
}

// scenarios returns the scenarios that apply to the engine.
func (e engine) scenarios() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool {
		return s.engines != nil && !slices.Contains(s.engines, e.name)
	})
}

// defaultRounds returns the default number of rounds of each contender, and their length.
// On servers that write to a disk they are fewer and shorter, so that a run takes about
// four minutes.
func (e engine) defaultRounds() (rounds int, length time.Duration) {
	if e.name == "redis" {
		return 5, 2 * time.Second
	}
	return 2, 700 * time.Millisecond
}
