package redisscript

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// fakeServer is a server with fixed answers to the doctor.
type fakeServer struct {
	Conn
	answers map[string]string
}

func (s fakeServer) Do(_ context.Context, c Command) Reply {
	if c.Keys != nil {
		return Reply{Err: errors.New("ERR no scripts")}
	}
	answer, ok := s.answers[c.Words[0]]
	if !ok {
		return Reply{Err: errors.New("NOPERM no right")}
	}
	return Reply{Text: answer}
}

func (s fakeServer) client(cluster bool) *Client {
	return &Client{Conn: s, Location: "fake", Cluster: cluster, Nodes: func(context.Context, bool) ([]Node, error) {
		return []Node{{Name: "fake:1", Conn: s}}, nil
	}}
}

// The fake servers have versions and clocks that no server on this machine can have.
func TestTheDoctorOnFakeServers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		at := func(d time.Duration) string { return fmt.Sprintf("%d\n0\n", time.Now().Add(d).Unix()) }
		for what, c := range map[string]struct {
			cluster bool
			info    string
			time    string
			want    string // a finding; empty: none is required
			never   string // the subject that no finding may have
		}{
			"too old":                    {info: "redis_version:6.0.16", want: "error version"},
			"old enough":                 {info: "redis_version:6.2.0", never: "version"},
			"old enough for a cluster":   {info: "redis_version:6.2.14", cluster: true, want: "info version"},
			"new enough for a cluster":   {info: "redis_version:7.0.0", cluster: true, never: "version"},
			"with two digits":            {info: "redis_version:10.0.1", never: "version"},
			"Valkey":                     {info: "valkey_version:8.0.1\r\nredis_version:5.0.0", never: "version"},
			"a clock an hour behind":     {time: at(-time.Hour), want: "warning clock"},
			"a clock some seconds ahead": {time: at(30 * time.Second), want: "info clock"},
			"a clock that is right":      {time: at(0), never: "clock"},
			"a disk that is full":        {info: "role:master\r\naof_enabled:1\r\naof_last_write_status:err", want: "error persistence"},
			"many clients":               {info: "maxclients:100\r\nconnected_clients:95", want: "warning maxclients"},
			"a replica that is behind":   {info: "role:master\r\nconnected_slaves:1\r\nslave0:ip=1.2.3.4,port=1,state=wait_bgsave,offset=0,lag=0", want: "warning replicas"},
		} {
			answers := map[string]string{"INFO": c.info, "EVAL": "", "SCAN": ""}
			if c.time != "" {
				answers["TIME"] = c.time
			}
			d := New(fakeServer{answers: answers}.client(c.cluster), Options{Prefix: "pawl:", NoPush: true})
			found, err := d.Diagnose(t.Context())
			_ = d.Close()
			if err != nil {
				t.Fatal(err)
			}
			has := c.want == ""
			for _, f := range found {
				has = has || string(f.Severity)+" "+f.Subject == c.want && strings.HasPrefix(f.Detail, "fake:1: ")
				if f.Subject == c.never {
					t.Errorf("%s: %+v", what, f)
				}
			}
			if !has {
				t.Errorf("%s: %+v; want %s", what, found, c.want)
			}
		}
	})
}

// The doctor tries every command that a script calls.
func TestTheDoctorTriesEveryRight(t *testing.T) {
	call := regexp.MustCompile(`p?call\('([A-Z]+)'`)
	for name, text := range luaFiles(t) {
		for _, found := range call.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(rightsScript.Source, "try('"+found[1]+"'") {
				t.Errorf("%s calls %s, and rights.lua does not try it", name, found[1])
			}
		}
	}
}
