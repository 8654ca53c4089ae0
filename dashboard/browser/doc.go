// Package browser tries the dashboard in a real browser: Debian's Chromium, driven by
// chromedp. It is a module of its own, so that neither is anybody's dependency; the test
// of package dashboard runs it. By itself:
//
//	go test -C dashboard/browser .
//
// Its pictures of the dashboard, for docs/pictures, are made by `make screenshots`.
package browser
