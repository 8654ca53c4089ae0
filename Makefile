# Everything that is run on this repository has a target here; `make` alone lists them.
# CI runs .ci/run, which runs these targets and nothing else.

MODULE    := github.com/pawl-go/pawl
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# work is every package of the modules that go.work lists.
PKG      ?= work
BENCH    ?= .
COUNT    ?= 1
FUZZTIME ?= 10s

PROCESSORS := $(shell nproc 2>/dev/null || echo 2)

# What `make test` needs on the machine, as COMMAND:DEBIAN-PACKAGE. It is installed where it is missing.
# The servers of the backends stand in their table, and the harness of a backend finds the command in PATH.
# bash-completion is no command: so it is looked for where Debian has it.
NEEDS := $(firstword $(shell go env CC)):gcc $(shell sed -n 's/.*Needs: *"\(.*\)".*/\1/p' internal/backends/backends.go) $(if $(filter Linux,$(shell uname -s)),zsh:zsh fish:fish $(if $(wildcard /usr/share/bash-completion/bash_completion),,bash-completion:bash-completion))

# make test-all needs these, too.
NEEDS_ALL := $(if $(filter Linux,$(shell uname -s)),cron:cron chromium:chromium)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  variables: PKG=./driver  BENCH=Cycle  COUNT=10  FUZZTIME=1m  SEEDS=100000  FILES=docs/locks.md'

.PHONY: needs
needs: ## install what the tests need and the machine lacks
	@missing=; for need in $(NEEDS); do \
		command -v "$${need%%:*}" >/dev/null || missing="$$missing $${need#*:}"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	if ! command -v apt-get >/dev/null || { [ -n "$$as" ] && ! command -v sudo >/dev/null; }; then \
		echo "make: missing for the tests:$$missing. Install it with your package manager, then try again." >&2; \
		exit 1; \
	fi; \
	set -x; $$as apt-get update -qq && $$as apt-get install -y -qq --no-install-recommends $$missing libc6-dev

# A test of what happens when something is slow needs a machine that is not compiling. So everything is built before the
# first test runs. The servers are modules of their own.
SERVERS := etcd nats

# Go compiles a package once for each set of flags. There are two: PLAIN, and that of the tests. With this GOGC the
# compiler and the linters take a quarter less processor time, and more memory.
PLAIN     := GOGC=400 CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false'
AS_TESTED := GOGC=400 CGO_ENABLED=1 GOFLAGS='-race -trimpath -buildvcs=false'

.PHONY: servers
servers:
	@for server in $(SERVERS); do \
		GOWORK=$$([ -f internal/testservers/$$server/go.work ] || echo off) $(PLAIN) go build -C internal/testservers/$$server -o ../../../bin/testservers/$$server . || exit 1; \
	done

.PHONY: built
built: needs servers ## build what the tests need, before they run: the servers, and all dependencies
	@$(PLAIN) go build -o bin/testrun ./internal/testrun
	@$(AS_TESTED) go build $$(go list -deps -test -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' $(PKG) | grep -v ' \[\|\.test$$')

# The tests of the command start it a thousand times. make test lets them start this binary without the race detector,
# because that needs a third of the time.
.PHONY: bin/command/pawl
bin/command/pawl:
	@$(PLAIN) go test -c -vet=off -o $@ ./cmd/pawl

# With -j2, one of them downloads while another compiles.
.PHONY: ready
ready: built bin/command/pawl bin/golangci-lint bin/vale ## build what lint and test need

# Programs that only make test-all runs: FerretDB, the server and clients of S3, Prometheus, the API server of Kubernetes,
# and what drives Chromium. No test runs the benchmarks beside peers, so they are only compiled.
.PHONY: built-all
built-all: NEEDS += $(NEEDS_ALL)
built-all: SERVERS := $(patsubst internal/testservers/%/go.mod,%,$(wildcard internal/testservers/*/go.mod))
built-all: built
	@GOFLAGS= GOWORK= CGO_ENABLED=0 go test -C otellock/dashboard -c -o ../../bin/dashboard.test .
	@GOFLAGS= GOWORK= CGO_ENABLED=1 go test -C dashboard/browser -race -c -o ../../bin/browser.test .
	@GOFLAGS= GOWORK= go vet -C bench ./...

# TEST runs the tests of packages. make lint runs go vet's checks on all of them. With -trimpath, a clone uses what
# another clone has compiled.
TEST = CGO_ENABLED=1 PAWL_TEST_REQUIRE=1 bin/testrun -keep bin -vet=off -trimpath -shuffle=on -timeout=25m -count=$(COUNT)

# Most tests with a server wait rather than work, so more packages than processors run side by side.
COMMAND_IS_TESTED := $(filter work ./... ./cmd/... ./cmd/pawl ./cmd/pawl/... $(MODULE)/cmd/pawl,$(PKG))
.PHONY: test
test: built $(if $(COMMAND_IS_TESTED),bin/command/pawl) ## run the tests of each change, with the race detector; what cannot be tested fails
	@$(if $(COMMAND_IS_TESTED),PAWL_TEST_COMMANDS='$(CURDIR)/bin/command') $(TEST) -short -p $$(($(PROCESSORS) + 1)) -- $$(go list $(PKG))

# These keep all processors busy by themselves, with whole clusters or dozens of servers. Beside others that do so, their
# members take each other for dead.
ALONE := $(patsubst %,$(MODULE)/%,etcdlock postgreslock natslock redislock/redlock cmd/pawl)

.PHONY: test-all
test-all: built-all ## run all tests: also clusters, crowds, the browser, proofs and what waits for time to pass
	@all=$$(go list $(PKG)) && [ -n "$$all" ] || exit 1; beside=; alone=; \
	for pkg in $$all; do \
		case ' $(ALONE) ' in *" $$pkg "*) alone="$$alone -- $$pkg" ;; *) beside="$$beside $$pkg" ;; esac; \
	done; \
	$(TEST) -- $$beside $$alone

# A clone of HEAD, for those who are about to push; with fresh caches and a hostile environment, for those who change
# what the tests need.
.PHONY: check
check: ## run .ci/run on a fresh clone of HEAD, with a home and temporary files of its own
	@internal/tools/check.sh

.PHONY: bare
bare: ## the same as on a bare machine: cold caches, no history, another umask, time zone and language; BARE_USER=nobody
	@internal/tools/check.sh bare $(BARE_USER)

RUNS ?= 6

.PHONY: slow
slow: built ## run make test RUNS times at once on clones of HEAD, each with a third of a processor
	@internal/tools/slow.sh $(RUNS) $(PKG)

# Which versions, oldest or newest, and which modules.
VERSIONS ?= oldest
CLIENTS  ?= $(patsubst %/go.mod,%,$(wildcard *lock/go.mod))

.PHONY: clients
clients: needs ## run the tests of each client's module with the VERSIONS oldest or newest
	PAWL_TEST_REQUIRE=1 internal/tools/clients.sh $(VERSIONS) $(CLIENTS)

# Most packages of these wait rather than work, so more of them than processors run side by side. The simulation runs a
# tenth of its schedules.
.PHONY: quick
quick: ## run the tests that need no server, without the race detector
	PAWL_TEST_SERVERS=none PAWL_SIM_SEEDS=150 go test -p 6 $(PKG)

.PHONY: cover
cover: built-all ## run the tests and say how much of the code they reach, whoever's tests they are
	@mkdir -p bin
	PAWL_TEST_REQUIRE=1 go test -coverpkg=$(MODULE)/... -coverprofile=bin/cover.out $(PKG)
	@go tool cover -func=bin/cover.out | awk '/^total:/ { print $$NF " in all; go tool cover -html=bin/cover.out shows the lines" }'

.PHONY: bench
bench: ## run the benchmarks, and Pawl beside its peers; with PKG= or BENCH= only those; docs/internals/benchmarks.md has the numbers
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count=$(COUNT) $(PKG)
	$(if $(filter-out file,$(origin PKG) $(origin BENCH)),,$(MAKE) --no-print-directory peers)

# What it is run on: redis, postgres, mysql, etcd, nats, or mongo (FerretDB, whose times say nothing of MongoDB's, unless
# PAWL_TEST_MONGODB_URL is set). Of these make installs redis-server only; make test installs the others.
ENGINE ?= redis

.PHONY: peers
peers: NEEDS := redis-server:redis-server
peers: needs ## run Pawl beside other locks on one ENGINE; PEERS='-scenario own -rounds 1' for a part of it
	cd bench && go run . -engine $(ENGINE) $(PEERS)

.PHONY: growth
growth: NEEDS := redis-server:redis-server
growth: needs ## measure how each step's cost grows with names, holders, waiters, watchers, clients; ENGINE= as above, mem or sqlite
	cd bench && go run . -growth -engine $(ENGINE) -keep ../bin/growth

# How many schedules, and over how many processes; or the one to repeat. BACKEND= for one of memory, store, quorum, redis.
SEEDS    ?= 20000
PARALLEL ?= $(PROCESSORS)
SEED     ?=
BACKEND  ?=

.PHONY: sim
sim: ## run SEEDS schedules of the simulation, with the seeds of those that fail; SEED=17 repeats one
	@overlay=$$(go run ./internal/e2e/sim/runtimedice bin/_runtimedice) && go test -c -overlay "$$overlay" -o bin/sim.test ./internal/e2e/sim
	@cd internal/e2e/sim && PAWL_SIM_BACKEND=$(BACKEND) ../../../bin/sim.test -test.run '^TestASeedIsTheSameEachTime$$'
	@cd internal/e2e/sim && export PAWL_SIM_BACKEND=$(BACKEND) && run='../../../bin/sim.test -test.run ^TestSchedules$$ -test.v -test.timeout 0' && \
	if [ -n '$(SEED)' ]; then PAWL_SIM_SEED=$(SEED) $$run; else \
		seq 1 $(PARALLEL) | xargs -P $(PARALLEL) -I{} env PAWL_SIM_SEED={} PAWL_SIM_STEP=$(PARALLEL) \
			PAWL_SIM_SEEDS=$$(( ($(SEEDS) + $(PARALLEL) - 1) / $(PARALLEL) )) $$run; \
	fi

# Inter is a font, and no command: so it is looked for where Debian has it.
screenshots: NEEDS := chromium:chromium pngquant:pngquant $(if $(wildcard /usr/share/fonts/opentype/inter),,inter:fonts-inter)
.PHONY: screenshots
screenshots: needs ## make the pictures of the dashboard in docs/pictures, of the real thing
	@rm -rf bin/screenshots && mkdir -p bin/screenshots
	FONTCONFIG_FILE="$(CURDIR)"/dashboard/browser/testdata/fonts.conf \
		go test -C dashboard/browser -tags pictures -run '^TestPictures$$' -count=1 . -into "$(CURDIR)"/bin/screenshots
	pngquant --quality 70-95 --speed 1 --strip --ext .small.png bin/screenshots/*.png
	@for picture in bin/screenshots/*.small.png; do \
		name=$$(basename $$picture .small.png); size=$$(wc -c < $$picture); \
		[ $$size -lt 170000 ] || { echo "make: $$name has $$size bytes, 170000 are allowed" >&2; exit 1; }; \
		mv $$picture docs/pictures/$$name.png; \
	done

# How long a run on an engine is, and which bug is planted; ENGINE=all takes all engines one after the other.
FOR     ?= 10m
PLANTED ?=

.PHONY: prove
prove: needs ## run `pawl prove` on ENGINE=redis or all FOR=10m; alone, with each planted bug, which it must find
	go run ./internal/e2e/prove $(if $(filter-out file,$(origin ENGINE)),-engine '$(ENGINE)') -for $(FOR) -planted '$(PLANTED)'

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@set -e; for pkg in $$(go list $(PKG)); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# What `make model` needs, and nothing else does.
model: NEEDS := spin:spin cc:gcc
.PHONY: model
model: needs ## check the models with Spin, and show that their counterexamples are found; four minutes
	docs/internals/models/check.sh

.PHONY: build
build: ## build the command, to bin/pawl: one static file
	CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags='-s -w' -o bin/ ./cmd/pawl

# Where `make install` puts things, and below which folder, for packagers.
PREFIX  ?= /usr/local
DESTDIR ?=
SHARE    = $(DESTDIR)$(PREFIX)/share

.PHONY: extras
extras: build ## write the manual pages and the completions to bin/
	@rm -rf bin/extras && mkdir -p bin/extras/man bin/extras/completions
	bin/pawl man bin/extras/man
	bin/pawl completion bash > bin/extras/completions/pawl.bash
	bin/pawl completion zsh > bin/extras/completions/_pawl
	bin/pawl completion fish > bin/extras/completions/pawl.fish
	bin/pawl completion powershell > bin/extras/completions/pawl.ps1

.PHONY: sbom
sbom: ## build what makes the list of the modules of a release, to bin/
	GOWORK=off go -C internal/tools build -o ../../bin/sbom ./sbom

.PHONY: install
install: extras ## install the command, its manual pages and completions; PREFIX=/usr/local
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 bin/pawl $(DESTDIR)$(PREFIX)/bin/pawl
	install -m 644 bin/extras/man/*.1 $(SHARE)/man/man1
	install -m 644 bin/extras/completions/pawl.bash $(SHARE)/bash-completion/completions/pawl
	install -m 644 bin/extras/completions/_pawl $(SHARE)/zsh/site-functions/_pawl
	install -m 644 bin/extras/completions/pawl.fish $(SHARE)/fish/vendor_completions.d/pawl.fish

# The last version that builds with this Go. It is no tool of internal/tools: its 500 modules would drown the rest.
RELEASER ?= go run github.com/goreleaser/goreleaser/v2@v2.16.0

.PHONY: snapshot
snapshot: ## build what a release consists of, to dist/, and look at it; it takes minutes
	$(RELEASER) release --snapshot --clean
	internal/tools/check-snapshot.sh

.PHONY: release
release: ## tag all modules in a clone, bin/release, and say what to push: VERSION=v0.1.0
	@rm -rf bin/release && mkdir -p bin && internal/tools/release.sh '$(VERSION)' "$(CURDIR)"/bin/release

.PHONY: draft
draft: ## draft the release of the tag that is checked out, on GitHub
	$(RELEASER) release --clean

.PHONY: cross
cross: ## compile everything, tests too, for each platform
	@set -e; for p in $(PLATFORMS); do \
		echo "== $$p"; export CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/}; \
		go build work; go vet work; \
	done

# The linters skip files that are for builds without the race detector. So they look at these folders again.
WITHOUT_RACE = $$(find . -name '*.go' -not -path './bin/*' -exec grep -l '^//go:build.*!race' {} + | xargs -n1 dirname | sort -u)

.PHONY: lint
lint: bin/vale bin/golangci-lint ## run gofmt, golangci-lint with go vet, the linter of the prose, the rules of the repository and the go.mod check
	@files=$$(find . -name '*.go' -not -path './bin/*' -exec gofmt -s -l {} +) || exit 1; \
	[ -z "$$files" ] || { echo "not as gofmt -s -w writes it:"; echo "$$files"; exit 1; }
	@internal/tools/prose.sh
	$(PLAIN) go test -count=1 ./internal/repotest
	$(AS_TESTED) go vet -tags embedded ./cmd/pawl
	$(AS_TESTED) bin/golangci-lint run $(if $(filter work,$(PKG)),$$(go list -m -f '{{.Dir}}/...' | sed "s|^$$(pwd -P)|.|"),$(PKG))
	$(PLAIN) bin/golangci-lint run $(WITHOUT_RACE)
	! command -v luacheck >/dev/null || (cd internal/redisscript && luacheck -q sent)
	internal/tools/tidy.sh -diff
	internal/tools/apidiff.sh

.PHONY: pictures
pictures: ## draw docs/pictures: how it works, and the charts, from the numbers that the documents have
	go run ./internal/pictures

# The generator is in bin, too: what it is made of is no part of the repository. SITE_BASE is the
# folder of the server that the site will be in, such as /pawl/.
bin/site.build/node_modules: internal/site/package-lock.json
	@mkdir -p bin/site.build && cp internal/site/package.json internal/site/package-lock.json internal/site/.npmrc bin/site.build/
	npm ci --prefix bin/site.build --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: site
site: bin/site.build/node_modules ## build the documents as HTML, to bin/site; it needs Node 20 or later
	@rm -rf bin/site bin/site.build/pages bin/site.build/.vitepress && mkdir -p bin/site.build/pages
	@cp -R internal/site/.vitepress bin/site.build/ && cp -R docs README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md bin/site.build/pages/
	cd bin/site.build && PAWL_VERSION=$$(git describe --tags --always) npx --offline vitepress build

# FILES=docs/locks.md looks at that one only.
FILES ?=

.PHONY: prose
prose: bin/vale ## find sentences that are hard to read, in documents and comments; FILES=docs/locks.md
	@internal/tools/prose.sh $(FILES)

.PHONY: bin/golangci-lint
bin/golangci-lint:
	@GOWORK=off $(PLAIN) go -C internal/tools build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: bin/vale
bin/vale:
	@GOWORK=off $(PLAIN) CGO_ENABLED=1 CGO_CFLAGS=-w go -C internal/tools/vale build -o ../../../bin/vale github.com/vale-cli/vale/v3/cmd/vale

.PHONY: tidy
tidy: ## make go.mod and go.sum of all modules right
	internal/tools/tidy.sh
