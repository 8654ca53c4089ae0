package drivertest

import "github.com/pawl-go/pawl/driver"

func testReadWrite(s *suite) {
	s.test("ReadersShare", func(k *kit) {
		f1, f2, f3 := k.a.gets(k.reader()).Fence, k.b.gets(k.reader()).Fence, k.a.gets(k.reader()).Fence
		k.b.heldBy(f1, f2, f3)
	})

	s.test("EveryReaderKeepsAWriterOut", func(k *kit) {
		first, second, writer := k.reader(), k.reader(), k.mutex()
		k.a.gets(first)
		k.b.gets(second)
		k.a.refused(writer)
		k.a.releases(first)
		k.a.refused(writer)
		k.b.releases(second)
		k.a.gets(writer)
	})

	s.test("NoReaderPassesAWaitingWriter", func(k *kit) {
		first, writer, late := k.reader(), k.mutex(queue(long)), k.reader(queue(long))
		k.a.gets(first)
		k.b.waits(writer, 1)
		k.a.waits(k.reader(), 0)
		k.a.waits(late, 2)
		k.a.releases(first)
		k.a.seesHoldersWaiters(1, 1)
		k.b.gets(writer)
		k.a.waits(late, 1)
	})

	s.test("AfterTheWriterAllReadersUpToTheNextWriterEnter", func(k *kit) {
		writer := k.mutex()
		k.a.gets(writer)
		one, two, next, late := k.reader(queue(long)), k.reader(queue(long)), k.mutex(queue(long)), k.reader(queue(long))
		for i, c := range []driver.Claim{one, two, next, late} {
			k.b.waits(c, i+1)
		}
		k.a.releases(writer)
		k.a.seesHoldersWaiters(2, 2)
		k.b.gets(one)
		k.b.gets(two)
		k.b.waits(next, 1)
		k.b.waits(late, 2)
	})

	s.test("AWriterThatGivesUpLetsTheReadersIn", func(k *kit) {
		first, writer, late := k.reader(), k.mutex(queue(long)), k.reader(queue(long))
		k.a.gets(first)
		k.b.waits(writer, 1)
		k.a.waits(late, 2)
		k.b.releases(writer)
		k.a.gets(late)
		k.a.seesHoldersWaiters(2, 0)
	})

	s.test("EachWaitingWriterWaitsForItself", func(k *kit) {
		first, one, two := k.reader(), k.mutex(queue(long)), k.mutex(queue(long))
		k.a.gets(first)
		k.a.waits(one, 1)
		k.b.waits(two, 2)
		k.a.releases(one)
		k.a.refused(k.reader()) // the other one still waits
		k.b.waits(two, 1)
	})

	s.test("ADeadReaderDoesNotLiveOnBecauseAnotherRenews", func(k *kit) {
		dead, alive := k.reader(ttl(2*k.u)), k.reader(ttl(2*k.u))
		k.a.gets(dead)
		k.b.gets(alive)
		k.pass(k.u)
		k.b.keeps(alive)
		k.past(k.u)
		k.a.lost(dead)
		k.b.releases(alive)
		k.a.gets(k.mutex())
	})

	s.test("AllKindsShareOneNameSpace", func(k *kit) {
		mutex, reader, permit := k.mutex(), k.reader(), k.permits(1, 3)
		k.a.gets(mutex)
		k.b.refused(reader)
		k.b.refused(permit)
		k.a.releases(mutex)

		k.b.gets(permit)
		k.a.refused(mutex)
		k.a.gets(reader) // one of all, beside one of three
		k.b.refused(k.permits(2, 3))
		k.b.gets(k.permits(1, 3))
		k.b.refused(k.permits(1, 3))
	})
}
