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
// Nothing. The driver creates the file if it is missing, with mode 0600, and missing
// folders with 0700: a user that can read the file can read the tokens in it, and so
// release the locks of others. To share it between users, create the folder and the
// (empty) file with the owner, the group and the mode that you want; SQLite gives its two
// companions, FILE-wal and FILE-shm, the same. The driver refuses a file of another
// application, or of a newer Pawl. A file of Pawl may also have your own tables.
//
// # Which disks will do?
//
// Local ones. SQLite in WAL mode shares memory between its processes, so all processes
// have to run on one host. Network filesystems do not work; Diagnose reports them. In
// containers, mount the folder, not the file, so that the containers share the
// companions.
//
// # Whose clock decides?
//
// The host's wall clock, which all its processes share. If it is set back, leases last
// longer by the difference. If it is set forward, leases end early, and the holder
// detects that with its next renewal. Fences rise in either case, unless the driver has
// deleted the entry of a name (see [Options.Retention]) and the clock is then set back
// past its last grant.
//
// # What survives a crash?
//
// If a process is killed at any instruction, the file stays intact, and the leases of the
// process expire. If the machine loses its power, the file stays intact, but may lack the
// last grants. That is safe, because their holders ended with the machine, and fences
// follow the clock.
//
// # What if the file is deleted or truncated?
//
// Do neither while the file is in use: processes that have it open go on with the deleted
// file, the next process creates a new one, and both could hold one lock. Pawl detects
// the deletion within about 100 ms of the next use, and from then on every call returns a
// permanent error. Fences of the new file are still greater. To start with an empty file,
// stop all programs that use it, then delete FILE, FILE-wal and FILE-shm together.
//
// Pawl detects a truncated file in the same way. It also detects a truncated FILE-wal,
// unless a process writes first; then the lost part counts as damaged. In either case no
// name is granted twice, because a damaged entry does not count as free.
//
// # How fast is it?
//
// About 25 000 cycles of acquire and release per second on an ordinary machine, for all
// processes of a file together. On Linux, a waiter in another process gets a released
// name in less than a millisecond: the releasing process sends it a wake-up, an empty
// datagram, and it then reads the file. A driver that receives no wake-ups (on other
// systems, and between containers with networks of their own) polls every few
// milliseconds while one of its claims waits in a queue, see [Options.Poll]. It polls
// every 100 ms while it holds leases, which another client could break, or watches a
// name.
//
// # What if the disk is full?
//
// Pawl refuses new names, with an error that says so. Holders can still renew and release
// while the file has free pages; Pawl gives a new file some of them.
//
// # Can the work itself check the lock?
//
// Yes, if its data is also in SQLite: call [CheckLease] in the transaction of the work.
//
// # Is every grant on the disk?
//
// No: about one transaction in a thousand waits for the disk. That keeps the file intact
// in a power cut.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser, driver.AllAcquirer and driver.Diagnoser;
// [driver.As] finds them. [LeaseChecker] is for transactions of the work.
package sqlitelock
