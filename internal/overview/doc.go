// Package overview looks at all names of a backend for people: what `pawl top` and the
// dashboard show.
//
// However many look, the backend is asked once. [Overview.Run] is the one goroutine that
// asks; it makes a [View] of what it has read, which never changes, and whoever shows one
// waits for the next as a [Viewer]. While nobody does, nothing is asked, but for what
// [Options.Background] wants.
//
//	o := overview.New(client, nil)
//	go o.Run(ctx)
//	viewer := o.Join()
//	defer viewer.Leave()
//	for view := o.View(); ; {
//		page := view.Page(overview.Query{Prefix: "report:", Sort: overview.ByAttention, Limit: 50})
//		viewer.Show(page.Names()) // changes of these are pushed, where the backend can
//		draw(page)
//		if view, err = viewer.Next(ctx, view); err != nil {
//			return err
//		}
//	}
//
// A list of all names costs the backend something, and each look must be worth it: see
// pace. What is shown is pushed besides: a change of a name that a viewer shows is read
// as soon as the backend tells of it, whatever the pace. A name that nobody has seen yet
// is found by the next look.
package overview
