package main

import "testing"

// kill -9 of pawl ends the command at once, long before the lease expires.
func TestKill9TakesTheCommandAlong(t *testing.T) {
	b := newLab(t)
	p := b.start("run", "--ttl", "1000", "x", "--", "sh", "-c", `trap "" TERM INT HUP; echo $$ > group; while :; do sleep 0.01; done`)
	pid := b.group()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code()
	eventually(t, "the command is gone", func() bool { return allDead(pid) })
	if len(b.entry("x").Holders) == 0 {
		t.Error("the lease is gone, too: what was waited for?")
	}
}
