package pawl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

func BenchmarkMemoryOneGoroutine(b *testing.B) {
	locks, _ := pawl.New(memlock.New(nil), nil)
	defer locks.Close(context.Background())
	ctx := context.Background()
	m := locks.Mutex("x")
	b.ReportAllocs()
	for b.Loop() {
		l, err := m.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemoryOwnNames64(b *testing.B) {
	locks, _ := pawl.New(memlock.New(nil), nil)
	defer locks.Close(context.Background())
	ctx := context.Background()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			m := locks.Mutex(fmt.Sprint("name", g))
			for range b.N / 64 {
				l, err := m.Lock(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				l.Release(ctx)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func BenchmarkMemoryOneName64(b *testing.B) {
	locks, _ := pawl.New(memlock.New(nil), nil)
	defer locks.Close(context.Background())
	ctx := context.Background()
	var wg sync.WaitGroup
	m := locks.Mutex("x")
	for range 64 {
		wg.Go(func() {
			for range b.N / 64 {
				l, err := m.Lock(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				l.Release(ctx)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}
