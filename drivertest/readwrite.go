package drivertest

import "github.com/pawl-go/pawl/driver"

func testReadWrite(s *suite) {
	s.test("ReadersShare", func(k *kit) {
		f1, f2, f3 := k.a.wantGranted(k.reader()).Fence, k.b.wantGranted(k.reader()).Fence, k.a.wantGranted(k.reader()).Fence
		k.b.wantFences(f1, f2, f3)
	})

	s.test("EveryReaderKeepsAWriterOut", func(k *kit) {
		first, second, writer := k.reader(), k.reader(), k.mutex()
		k.a.wantGranted(first)
		k.b.wantGranted(second)
		k.a.wantHeld(writer)
		k.a.mustRelease(first)
		k.a.wantHeld(writer)
		k.b.mustRelease(second)
		k.a.wantGranted(writer)
	})

	s.test("NoReaderPassesAWaitingWriter", func(k *kit) {
		first, writer, late := k.reader(), k.mutex(queue(long)), k.reader(queue(long))
		k.a.wantGranted(first)
		k.b.wantPlace(writer, 1)
		k.a.wantPlace(k.reader(), 0)
		k.a.wantPlace(late, 2)
		k.a.mustRelease(first)
		k.a.wantHoldersWaiters(1, 1)
		k.b.wantGranted(writer)
		k.a.wantPlace(late, 1)
	})

	s.test("AfterTheWriterAllReadersUpToTheNextWriterEnter", func(k *kit) {
		writer := k.mutex()
		k.a.wantGranted(writer)
		one, two, next, late := k.reader(queue(long)), k.reader(queue(long)), k.mutex(queue(long)), k.reader(queue(long))
		for i, c := range []driver.Claim{one, two, next, late} {
			k.b.wantPlace(c, i+1)
		}
		k.a.mustRelease(writer)
		k.a.wantHoldersWaiters(2, 2)
		k.b.wantGranted(one)
		k.b.wantGranted(two)
		k.b.wantPlace(next, 1)
		k.b.wantPlace(late, 2)
	})

	s.test("AWriterThatGivesUpLetsTheReadersIn", func(k *kit) {
		first, writer, late := k.reader(), k.mutex(queue(long)), k.reader(queue(long))
		k.a.wantGranted(first)
		k.b.wantPlace(writer, 1)
		k.a.wantPlace(late, 2)
		k.b.mustRelease(writer)
		k.a.wantGranted(late)
		k.a.wantHoldersWaiters(2, 0)
	})

	s.test("EachWaitingWriterWaitsForItself", func(k *kit) {
		first, one, two := k.reader(), k.mutex(queue(long)), k.mutex(queue(long))
		k.a.wantGranted(first)
		k.a.wantPlace(one, 1)
		k.b.wantPlace(two, 2)
		k.a.mustRelease(one)
		k.a.wantHeld(k.reader()) // the other writer still waits
		k.b.wantPlace(two, 1)
	})

	s.test("ADeadReaderDoesNotLiveOnBecauseAnotherRenews", func(k *kit) {
		dead, alive := k.reader(ttl(2*k.unit)), k.reader(ttl(2*k.unit))
		k.a.wantGranted(dead)
		k.b.wantGranted(alive)
		k.advance(k.unit)
		k.b.mustRenew(alive)
		k.advancePast(k.unit)
		k.a.wantLost(dead)
		k.b.mustRelease(alive)
		k.a.wantGranted(k.mutex())
	})

	s.test("AllKindsShareOneNameSpace", func(k *kit) {
		mutex, reader, permit := k.mutex(), k.reader(), k.permits(1, 3)
		k.a.wantGranted(mutex)
		k.b.wantHeld(reader)
		k.b.wantHeld(permit)
		k.a.mustRelease(mutex)

		k.b.wantGranted(permit)
		k.a.wantHeld(mutex)
		k.a.wantGranted(reader) // weight 1 without a limit, beside 1 of 3
		k.b.wantHeld(k.permits(2, 3))
		k.b.wantGranted(k.permits(1, 3))
		k.b.wantHeld(k.permits(1, 3))
	})
}
