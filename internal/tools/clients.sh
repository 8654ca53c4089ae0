#!/usr/bin/env bash
# clients.sh oldest|newest FOLDER...: runs the tests in each FOLDER, a module of one client, with the
# versions that its go.mod requires, or with the newest ones. The workspace has others: the highest
# that any module of the workspace requires.
set -euo pipefail
cd "$(dirname "$0")/../.."

versions=$1 top=$PWD
shift
mkdir -p bin/clients
export GOWORK=off CGO_ENABLED=1
for folder; do
	mod=$top/bin/clients/${folder//\//-}.mod
	cp "$folder/go.mod" "$mod"
	cp "$folder/go.sum" "${mod%.mod}.sum"
	go mod edit -replace="github.com/pawl-go/pawl=$top" "$mod"
	case $versions in
	oldest) ;;
	newest)
		mapfile -t newest < <(go list -C "$folder" -modfile="$mod" -m -f '{{if not (or .Main .Indirect .Replace)}}{{.Path}}@latest{{end}}' all)
		GOFLAGS=-mod=mod go get -C "$folder" -modfile="$mod" "${newest[@]}"
		;;
	*) echo "clients: \"$versions\"; want oldest or newest" >&2; exit 1 ;;
	esac
	(cd "$folder" && go test -race -count=1 -modfile="$mod" ./...)
done
