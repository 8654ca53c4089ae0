// Package browser tests the dashboard in a real browser: Debian's Chromium, which
// chromedp drives. It is a module of its own, so that no other module depends on Chromium
// or chromedp. The test of package dashboard runs it. To run it alone:
//
//	go test -C dashboard/browser .
//
// `make screenshots` makes its pictures of the dashboard, for docs/pictures.
package browser
