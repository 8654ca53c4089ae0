package main

// The only file that imports the backends. Each registers its URL scheme.
import (
	_ "github.com/pawl-go/pawl/memlock"    // mem:
	_ "github.com/pawl-go/pawl/redislock"  // redis://, rediss://, redis+unix://, valkey://, valkeys://
	_ "github.com/pawl-go/pawl/redlock"    // redlock://, redlocks://
	_ "github.com/pawl-go/pawl/sqlitelock" // sqlite:PATH
)

// backends are the URLs that this build knows, for version and for completion.
var backends = []string{"mem:", "redis:", "rediss:", "redis+unix:", "redlock:", "redlocks:", "sqlite:", "valkey:", "valkeys:"}
