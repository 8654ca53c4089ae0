//go:build !race

package repotest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// These tests follow the links in documents: each linked file and each anchor must exist.
// They check only the form of links to other sites, so that no test needs the network.

var (
	// A link may span two lines. A picture is a link with a "!" before it.
	inlineLink  = regexp.MustCompile(`\]\(\s*<?([^)>\s]+)>?(?:\s+"[^"]*")?\s*\)`)
	namedLink   = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s+(\S+)`)
	htmlLink    = regexp.MustCompile(`<[^>]*\b(?:href|src|srcset)="([^"]+)"`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.*?)\s*#*$`)
	htmlAnchor  = regexp.MustCompile(`<\w+ (?:id|name)="([^"]+)"`)
	headingLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

func TestLinksInDocumentsAreNotBroken(t *testing.T) {
	pages := sourceFiles(t, ".md")
	followed := 0
	for file, text := range pages {
		for _, to := range linksOf(string(text)) {
			followed++
			if err := checkLink(pages, file, to); err != nil {
				t.Errorf("%s links to %s: %v", file, to, err)
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links were found: are the patterns right?", followed)
	}
}

// linksOf returns the targets of all links of a page outside code.
func linksOf(page string) (targets []string) {
	text := codeSpan.ReplaceAllString(withoutCodeBlocks(page), "``")
	for _, pattern := range []*regexp.Regexp{inlineLink, namedLink, htmlLink} {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// withoutCodeBlocks returns a page without its blocks of code.
func withoutCodeBlocks(page string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.SplitSeq(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if trimmed == fence {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		case !strings.HasPrefix(line, "    "):
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func checkLink(pages map[string][]byte, from, to string) error {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return err
	case u.Scheme == "mailto":
		return nil
	case u.IsAbs() || u.Host != "":
		if u.Scheme != "https" && u.Scheme != "http" || !strings.Contains(u.Host, ".") || strings.HasSuffix(u.Host, ".") {
			return fmt.Errorf("the address is invalid")
		}
		return nil
	}
	file := from
	if u.Path != "" {
		file = filepath.Join(filepath.Dir(from), filepath.FromSlash(u.Path))
	}
	if strings.HasPrefix(file, "..") {
		return fmt.Errorf("the file is outside the repository")
	}
	about, err := os.Stat(file)
	if err != nil {
		return err
	}
	if u.Fragment == "" || about.IsDir() {
		return nil
	}
	page, ok := pages[file]
	if !ok {
		return fmt.Errorf("only documents have anchors")
	}
	if !anchors(string(page))[u.Fragment] {
		return fmt.Errorf("%s has no such anchor", file)
	}
	return nil
}

// anchors returns the anchors of a page: the ones that GitHub makes for its headings, and
// the ids of its elements.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	text := withoutCodeBlocks(page)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		a := anchorOf(m[1])
		for i := 1; found[a]; i++ {
			a = fmt.Sprintf("%s-%d", anchorOf(m[1]), i)
		}
		found[a] = true
	}
	for _, m := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

var droppedFromAnchors = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)

func anchorOf(heading string) string {
	text := headingLink.ReplaceAllString(heading, "$1")
	return strings.ReplaceAll(droppedFromAnchors.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// The test above can fail.
func TestBrokenLinksAreFound(t *testing.T) {
	pages := map[string][]byte{"README.md": []byte("# Hello, `World`\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n")}
	for to, good := range map[string]bool{
		"README.md": true, "docs": true, "#hello-world": true, "README.md#twice-1": true, "https://example.org/x": true,
		"README.txt": false, "#hello": false, "README.md#twice-2": false, "#no-heading": false, "https://example": false,
		"../elsewhere": false, "LICENSE#grant": false, "ftp://example.org": false,
	} {
		if err := checkLink(pages, "README.md", to); (err == nil) != good {
			t.Errorf("a link to %s: %v; is it good: %v", to, err, good)
		}
	}
	got := linksOf("[a](x \"title\") ![b](y.svg)\n<img src=\"z.svg\">\n`[c](code)`\n[d]: https://example.org\n[e\nf](w)\n```\n[g](code)\n```\n")
	if fmt.Sprint(got) != "[x y.svg w https://example.org z.svg]" {
		t.Errorf("the links are %q, want those outside code", got)
	}
}
