// Package sqlitelock keeps locks in an SQLite file: for several processes on one host,
// with no server to run. It is pure Go; nothing has to be installed.
//
//	d, err := sqlitelock.OpenFile(ctx, "/var/lib/pawl/locks.db", nil)
//	locks, err := pawl.New(d, nil)
//
// or, by URL, pawl.Open(ctx, "sqlite:/var/lib/pawl/locks.db", nil).
//
// # URLs
//
// The form is "sqlite:PATH": absolute, or relative to the working directory. After
// "sqlite://" the path has to be absolute. In a path, write ?, # and % as %3F, %23 and
// %25. The parameters are:
//
//   - retention=DURATION: see [Options.Retention], as in "24h"
//   - poll=DURATION: see [Options.Poll], as in "4ms"
//   - create=false: see [Options.MustExist]
//
// # What has to be set up?
//
// Nothing. The file is made when it is missing, with mode 0600, and missing folders with
// 0700: who can read the file can read the tokens in it, and so release what others hold.
// To share it between users, make the folder and the (empty) file with the owner, the
// group and the mode that you want; SQLite gives its two companions, FILE-wal and
// FILE-shm, the same. A file of another application, or of a newer Pawl, is refused; in
// one that Pawl has made you may have tables of your own.
//
// # Which disks will do?
//
// Local ones. SQLite in WAL mode shares memory between its processes, so all of them have
// to run on one host, and network filesystems are out; [Driver.Diagnose] looks for them.
// In containers, mount the folder, not the file, so that the companions are shared too.
//
// # Whose clock decides?
//
// The host's wall clock, which all its processes share. When it is set back, leases last
// longer by as much; when it is set forward, they end early, and their holders hear of it
// by the next renewal. Fences rise in either case, unless the entry of a name was
// forgotten (see [Options.Retention]) and the clock then went back past its last grant.
//
// # What survives a crash?
//
// A process may be killed at any instruction: the file stays whole, and its leases run
// out. A machine may lose its power: the file stays whole, and the last grants before it
// may be forgotten, which harms nobody, because their holders ended with the machine and
// fences follow the clock.
//
// # What if the file is deleted or truncated?
//
// Do not do it while the file is in use: processes that have it open go on with the
// deleted file, and the next process makes a new one, so both could hold a lock at once.
// It is noticed within about 100 ms of the next use, and from then on every call answers
// with a permanent error; fences of the new file are greater all the same. To start
// afresh, stop all that use it, then delete FILE, FILE-wal and FILE-shm together.
//
// A file that is truncated is noticed in the same way. A FILE-wal that is truncated is,
// too, unless somebody writes before anybody looks. Then what stood in it reads as
// damage. In either case nothing is granted twice: a name that cannot be read is not
// free.
//
// # How fast is it?
//
// Some 25 000 cycles of acquire and release per second on an ordinary machine; the
// processes of a file share that. A name is handed over between processes in less than a
// millisecond on Linux, where a doorbell, a datagram without content, tells the next
// holder to look into the file. Where no doorbell is heard (on other systems, and between
// containers with networks of their own), a driver looks every few milliseconds while one
// of its claims waits in a queue, see [Options.Poll]; and every 100 ms while it holds
// leases, which somebody could break, or watches a name.
//
// # What if the disk is full?
//
// New names are refused, with an error that says so. What is held can be renewed and
// released as long as the pages that it needs are there already, which they mostly are: a
// new file has some to spare.
//
// # Can the work itself check the lock?
//
// If its data is in SQLite, too: [CheckLease], in the transaction of the work.
//
// # Is every grant on the disk?
//
// No: the disk is waited for about once in a thousand transactions, which keeps the file
// whole in a power cut.
package sqlitelock
