# Everything runs with Go alone. `make test-all` adds a C compiler for the race detector, a browser that
# opens reports, and small programs that others wrote. It says what is missing, and asks before it
# installs that.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/lint/go.mod

# Only the race detector needs C. One setting for all else lets it share what the compiler made.
export CGO_ENABLED := 0

# More memory saves a fifth of the CPU time of compilers, linters and tests.
export GOGC := 400

.PHONY: all build test lint format fuzz bench ci

all: build

# Without symbols and debug information, a quarter of the program. Stack traces and profiles need neither.
build:
	$(GO) build -trimpath -ldflags="-s -w" -o assay ./cmd/assay

# A slow test says so itself: it skips with -short, or its file has the build tag !race. cmd/assay
# needs more than the ten minutes that `go test` gives a package by default if a machine is busy.
# Four tests of a package run at once, because many wait for servers and programs.
TEST := $(GO) test -timeout 25m -parallel 4

# The quick answer: four minutes on two cores.
test:
	$(TEST) -short ./...
	@echo "make test leaves out the race detector, the soak, the long statistical tests, the browser,"
	@echo "and programs that others wrote (aimock, servers of tools); make test-all adds them."

# Everything that CI tests.
.PHONY: test-all rest race
test-all: programs
	$(MAKE) race rest

# The programs of others that are installed.
AIMOCK := .cache/aimock/node_modules/@copilotkit/aimock/dist/cli.js
AXE := .cache/axe/node_modules/axe-core/axe.min.js
MCP := .cache/mcp
AGENTS := .cache/agents
OTHERS = $(if $(wildcard $(AGENTS)),ASSAY_AGENTS=$(CURDIR)/$(AGENTS)) \
	$(if $(wildcard $(AGENTS)/presets),PATH="$(CURDIR)/$(AGENTS)/presets/node_modules/.bin:$$PATH:$(CURDIR)/$(AGENTS)/fast-agent/bin:$(CURDIR)/$(AGENTS)/kimi/node_modules/with-its-node") \
	$(if $(wildcard $(MCP)/done),ASSAY_MCP_SERVERS=$(CURDIR)/$(MCP)) \
	$(if $(wildcard $(AIMOCK)),ASSAY_AIMOCK=$(CURDIR)/$(AIMOCK)) \
	$(if $(wildcard $(AXE)),ASSAY_AXE=$(CURDIR)/$(AXE))

# The race detector does not watch SQLite, which is C code translated to Go, nor regular
# expressions: they take five times as long when each of their memory accesses is watched. Locks
# inside them are still seen. A package that instantiates generic code of sync has to be watched,
# because the linker keeps one copy, and an unwatched one looks like a race. Packages that start no
# goroutine and share nothing are left to `make rest`. Without the setting of
# GORACE, each of the test programs sleeps for a second before it ends.
RACE := -race -gcflags=modernc.org/...=-race=false -gcflags=regexp/...=-race=false
race:
	@if command -v $${CC:-gcc} >/dev/null 2>&1; then set -x; \
		export GORACE="$$GORACE atexit_sleep_ms=0"; $(OTHERS) CGO_ENABLED=1 $(TEST) -short \
		-vet=off $(RACE) $$($(GO) run -C tools/study ./unraced -watched ../..); \
	else echo "make: no C compiler, so the race detector watches no test"; \
		$(OTHERS) $(TEST) -short -vet=off ./...; fi

# Compiles what race needs, if there is a C compiler already.
.PHONY: compile-race
compile-race:
	@! command -v $${CC:-gcc} >/dev/null 2>&1 || CGO_ENABLED=1 $(GO) build $(RACE) ./...

# The tests that the race detector leaves out.
rest:
	cd tools/study && $(TEST) -vet=off ./...
	$(OTHERS) $(TEST) -vet=off $$($(GO) run -C tools/study ./unraced ../..)

# What the tests can use beside Go: a C compiler for the race detector, a browser that opens reports,
# Prometheus, and programs that others wrote. All of it is optional. The script says what it will install
# and asks first, unless CI=true.
.PHONY: programs
programs:
	@tools/others/install.sh tests

# Programs that are larger: a proxy that translates between protocols, MLflow, Python's readers of our
# files, and all agents that the page about agents names. They take minutes to install, and 5 GB. The tests
# with the build tag strangers compare our protocols with the vendors' SDKs, which take as long to
# compile as all of Assay.
.PHONY: strangers try-strangers
strangers:
	@tools/others/install.sh strangers
	$(MAKE) try-strangers
try-strangers:
	$(OTHERS) ASSAY_AGENTS_ALL=1 ASSAY_LITELLM=$(CURDIR)/.cache/litellm/bin/litellm \
		$(if $(wildcard .cache/mlflow/done),ASSAY_MLFLOW=$(CURDIR)/.cache/mlflow/bin) \
		ASSAY_PYTHON=$(CURDIR)/.cache/python/bin/python ASSAY_PUBLISHED=$(CURDIR)/.cache/published/bin/python \
		$(GO) test -timeout 0 -v ./cmd/assay ./internal/result/atif ./internal/result/export \
		./internal/result/evallog ./internal/result/publish ./internal/task/world/own
	cd tools/study && $(GO) test -timeout 0 -v -tags strangers ./clients/...

# The go command leaves out folders called testdata.
LINTED := ./... ./cmd/assay/testdata/programs
lint:
	@out=$$($(TOOLS) gofumpt -l .); [ -z "$$out" ] || { echo "not formatted (make format):"; echo "$$out"; exit 1; }
	$(GO) vet $(LINTED)
	$(TOOLS) staticcheck $(LINTED)
	cd tools/study && $(GO) vet ./... && $(GO) tool -modfile=../lint/go.mod staticcheck ./...

format:
	$(TOOLS) gofumpt -w .

# Draws small experiments, and compares the first screen, tables, JSON and HTML with each other and with
# figures that Python recomputes from the export. AGREE='-n 40 -seed 7' for others.
AGREE ?= -n 2000
.PHONY: agree
agree:
	$(GO) run ./tools/agree $(AGREE)

# Each fuzzer for a while; FUZZTIME=10m for a long one.
FUZZTIME ?= 20s
fuzz:
	@for p in $$($(GO) list ./...); do \
		for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$($(GO) list -f '{{.Dir}}' $$p)/*_test.go 2>/dev/null | sed 's/func //'); do \
			echo "$$p $$f"; $(GO) test -tags strangers -run XXX -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

# The fuzzers of files that users write. An ordinary test reads their seeds, which include mutated files.
.PHONY: fuzz-files
fuzz-files:
	@for f in task/yamldoc:FuzzDecode experiment/plan:FuzzLoad \
		task/library:FuzzImport task/library:FuzzOwnFiles task/library:FuzzRegistry; do \
		$(GO) test -run XXX -fuzz "^$${f#*:}$$" -fuzztime $(FUZZTIME) ./internal/$${f%:*} || exit 1; \
	done

# The pictures of the README and the pages, in Chromium. A test says when they are out of date.
.PHONY: pictures
pictures:
	ASSAY_PICTURES=$(CURDIR)/docs/pictures $(GO) test -count=1 -run '^TestPictures$$' ./cmd/assay

# The soak's long form, for the night: half an hour under all faults at random.
.PHONY: soak
soak:
	ASSAY_SOAK=30m $(GO) test -v -run '^TestSoak$$|^TestAgentsBehind' -timeout 60m ./cmd/assay

# Benchmarks of single packages: see docs/measured.md. `go run ./tools/bench`
# measures the whole program.
bench: export GOGC := 100
bench:
	$(GO) test -run XXX -bench . -benchtime 1s ./...

ci:
	./.ci/run
