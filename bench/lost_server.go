package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// preparedServer is a server that is set up but not started. The run starts and kills
// it.
type preparedServer struct {
	addr, dir string
	command   string // starts the server, for the shell
}

// prepareServer sets a server up. Like the other servers by default, Redis must write
// each change to the disk before it answers. Otherwise each library loses locks when the
// server is killed.
func prepareServer(e engine) (*preparedServer, error) {
	srv, err := e.start()
	if err != nil {
		return nil, err
	}
	var p preparedServer
	var cmd *exec.Cmd
	switch s := srv.(type) {
	case *redisServer:
		s.halt()
		p, cmd = preparedServer{addr: s.addr, dir: s.dir}, s.cmd
		cmd.Args = append(cmd.Args, "--appendonly", "yes", "--appendfsync", "always")
	case *sqlServer:
		s.halt()
		p, cmd = preparedServer{addr: s.addr, dir: s.dir}, s.cmd
	case *etcdServer:
		s.halt()
		p, cmd = preparedServer{addr: s.addr, dir: s.dir}, s.cmd
	default:
		srv.stop()
		return nil, fmt.Errorf("-lost cannot restart a server of %s", e.name)
	}
	words := append([]string{"exec"}, cmd.Args...)
	words[1] = cmd.Path
	if a := cmd.SysProcAttr; a != nil && a.Credential != nil {
		words = append([]string{
			"exec", "setpriv", fmt.Sprint("--reuid=", a.Credential.Uid), fmt.Sprint("--regid=", a.Credential.Gid), "--clear-groups", "--",
		}, words[1:]...)
	}
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	words[0] = "exec"
	p.command = strings.Join(words, " ")
	return &p, nil
}

func (p *preparedServer) remove() { _ = os.RemoveAll(p.dir) }
