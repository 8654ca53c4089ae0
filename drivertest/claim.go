package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// option changes a claim that a test makes.
type option func(*driver.Claim)

func ttl(d time.Duration) option       { return func(c *driver.Claim) { c.TTL = d } }
func lockDelay(d time.Duration) option { return func(c *driver.Claim) { c.LockDelay = d } }
func fences(n int) option              { return func(c *driver.Claim) { c.Fences = n } }
func named(name string) option         { return func(c *driver.Claim) { c.Name = name } }
func owner(o driver.Owner) option      { return func(c *driver.Claim) { c.Owner = o } }
func force(c *driver.Claim)            { c.Force = true }

// queue makes the claim wait in the queue, where its place lasts d without a repeat.
func queue(d time.Duration) option {
	return func(c *driver.Claim) { c.Queue, c.QueueTTL = true, d }
}

// permits makes a claim of weight out of limit on the kit's name, with a new token and
// the TTL long.
func (k *kit) permits(weight, limit int, options ...option) driver.Claim {
	c := driver.Claim{
		Name: k.name, Token: driver.NewToken(), Owner: driver.Owner{Client: "drivertest", Host: "here", PID: 1},
		Weight: weight, Limit: limit, TTL: long,
	}
	for _, o := range options {
		o(&c)
	}
	k.recordClaim(c)
	return c
}

// mutex makes an exclusive claim, for a mutex or a writer.
func (k *kit) mutex(options ...option) driver.Claim {
	return k.permits(driver.Exclusive, driver.Unlimited, options...)
}

// reader makes a claim with the weight 1 and no limit.
func (k *kit) reader(options ...option) driver.Claim {
	return k.permits(1, driver.Unlimited, options...)
}

func lease(c driver.Claim) driver.LeaseRef {
	return driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
}
