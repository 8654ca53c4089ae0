// Package overview reads all names of a backend for people, for `pawl top` and the
// dashboard.
//
// The backend is read once, however many viewers there are. [Overview.Run] is the one
// goroutine that reads. It makes a [View] of each look, which never changes; a [Viewer]
// waits for the next view. Without viewers it reads nothing, except for
// [Options.Background].
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
// A list of all names has a cost for the backend, which limits how often they are read:
// see pace. Besides, a change of a name that a viewer shows is read as soon as the
// backend pushes it, whatever the pace. The next look finds new names.
package overview
