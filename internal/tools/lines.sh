#!/usr/bin/env bash
# lines.sh: the lines of the product: all Go files but tests, kits, suites, test servers,
# benchmarks, examples, and what draws or checks the documents.
set -euo pipefail
git ls-files '*.go' | grep -vE '_test\.go$|_kit\.go$|^(bench|drivertest|examples|dashboard/browser|otellock/dashboard)/|^internal/(e2e|repotest|testservers|tools|pictures|[a-z]+test|firstlock|swaplock|timeshift)/' | xargs cat | wc -l
