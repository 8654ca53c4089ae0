// Package overview reads all names of a backend for people, for `pawl top` and the
// dashboard.
//
// The backend is read once, however many viewers there are. [Overview.Run] is the one
// goroutine that reads. Each scan of all names makes a [View], which never changes; a
// [Viewer] waits for the next view. Without viewers Run reads nothing, except for
// [Options.BackgroundInterval].
//
//	o := overview.New(client, nil)
//	go o.Run(ctx)
//	viewer := o.Join()
//	defer viewer.Leave()
//	for view := o.View(); ; {
//		page := view.Page(overview.Query{Prefix: "report:", Sort: overview.ByAttention, Limit: 50})
//		viewer.Show(page.Names()) // if the backend can, it pushes changes of these
//		draw(page)
//		if view, err = viewer.Next(ctx, view); err != nil {
//			return err
//		}
//	}
//
// Listing all names is expensive for the backend, so Run pauses between two scans: see
// pace. If the backend pushes a change of a name that a viewer shows, Run reads that name
// at once, whatever the pace. The next scan finds new names.
package overview
