# Everything runs with Go alone. `make test-all` adds a C compiler for the race detector, a
# browser that opens reports, Python's readers of our files, and servers that others wrote. It
# installs whatever is missing if it can, and reports it if it cannot.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/lint/go.mod

.PHONY: all build test lint format fuzz bench ci

all: build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o assay ./cmd/assay

# The quick answer: a few minutes on two cores.
test:
	$(GO) test -short ./...
	@echo "make test leaves out the race detector, the soak, the long statistical tests, the browser,"
	@echo "and programs that others wrote (Python's readers, proxies); make test-all runs everything."

# The race detector does not watch SQLite, which is C code translated to Go, nor regular
# expressions: they take five times as long when each of their memory accesses is watched. Locks
# inside them are still seen.
RACE := -race -vet=off -gcflags=modernc.org/...=-race=false -gcflags=regexp/...=-race=false

# The tests of internal/task/library/wording_test.go.
TEXTS := ^Test(Descriptions|Plain|OnlyPlain|Clauses|Search|VeryEasy|InputsAre|GenerateNExtends)

# Tests of cmd/assay without the race detector: long games and long computations, whose parts are
# watched elsewhere, and stories of many short commands.
STORIES := bad-.*|help|output|library|stores|revisions|rehearsal|suites|gate|one-at-a-time|quickstart
ALONE   := ^TestGames|^TestBuiltinLibraryIsSound$$|^TestSuites$$|^TestReadme$$|^TestScripts$$/^($(STORIES))$$

# Tests that read thousands of Parquet files or rows in one goroutine.
PARQUET := ^TestDamagedParquet$$|^TestParquetOfManyRows$$|^TestParquetMemory$$

# Everything, as CI runs it. cmd/assay goes alone, because some of its tests need an answer within
# seconds. `make lint` has vetted the tests before.
.PHONY: test-all
test-all: compiler browser python others
	@if [ -x $(PYTHON)/bin/python ]; then export ASSAY_PYTHON=$(CURDIR)/$(PYTHON)/bin/python; fi; \
	if [ -x $(LITELLM)/bin/litellm ]; then export ASSAY_LITELLM=$(CURDIR)/$(LITELLM)/bin/litellm; fi; \
	export ASSAY_AGENTS=$(CURDIR)/$(AGENTS); \
	if [ -f $(MCP)/done ]; then export ASSAY_MCP_SERVERS=$(CURDIR)/$(MCP); fi; \
	if [ -f $(AIMOCK) ]; then export ASSAY_AIMOCK=$(CURDIR)/$(AIMOCK); fi; \
	if [ -f $(AXE) ]; then export ASSAY_AXE=$(CURDIR)/$(AXE); fi; \
	if command -v $${CC:-gcc} >/dev/null 2>&1; then \
		$(GO) test -run '^TestPinned|^TestBrowse|$(ALONE)' ./cmd/assay && \
		$(GO) test -run '^TestLimitersThatAre' ./internal/model/lane && \
		$(GO) test ./internal/model/limit && \
		$(GO) test ./internal/result/stat && \
		$(GO) test -run '$(PARQUET)' ./internal/result/export && \
		$(GO) test -run '^TestFlawLaws$$|^TestEveryFlaw|^TestPromptsWithoutPlan' \
			./internal/task/workflow ./internal/agent/episode && \
		$(GO) test -run '^TestSkillIs|^TestOptimalIs' ./internal/model/sim && \
		$(GO) test -run '$(TEXTS)' ./internal/task/library && \
		export CGO_ENABLED=1 && \
		$(GO) test $(RACE) -parallel 4 -timeout 25m -skip '$(ALONE)' ./cmd/assay && \
		$(GO) test $(RACE) -p 2 -timeout 25m -skip '$(PARQUET)' $$($(GO) list ./... | grep -v cmd/assay); \
	else \
		echo "make: no C compiler, so the tests run without the race detector"; \
		$(GO) test -p 1 -parallel 4 -timeout 25m ./...; \
	fi

# The race detector needs a C compiler.
.PHONY: compiler
compiler:
	@command -v $${CC:-gcc} >/dev/null 2>&1 || { \
		command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -y -qq gcc libc6-dev; } || true

# Tests open the reports in Debian's Chromium.
.PHONY: browser
browser:
	@command -v chromium >/dev/null 2>&1 || { \
		command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		echo "make: no chromium, so no browser opens the reports"

# These programs read our export files.
PYTHON := .cache/python
READERS := duckdb==2.0.0 pandas==3.1.1 pyarrow==26.0.1 inspect_ai==0.3.285
.PHONY: python
python:
	@[ -f $(PYTHON)/done ] || { \
		{ python3 -m venv $(PYTHON) 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
		apt-get install -y -qq python3-venv >/dev/null && python3 -m venv $(PYTHON); }; } && \
		$(PYTHON)/bin/python -m pip install -q $(READERS) && touch $(PYTHON)/done; } || \
		{ rm -rf $(PYTHON); echo "make: no Python with $(READERS), so they don't read our files"; }

# Programs that others wrote: a proxy that translates between protocols, one that mocks many
# providers, servers of tools, and a collector of metrics.
LITELLM := .cache/litellm
AIMOCK := .cache/aimock/node_modules/@copilotkit/aimock/dist/cli.js
AXE := .cache/axe/node_modules/axe-core/axe.min.js
MCP := .cache/mcp
MCP_PYTHON := 'mcp<2' mcp-server-sqlite==2025.4.25 mcp-server-git==2026.10.10 \
	mcp-server-time==2026.10.10
MCP_NODE := @modelcontextprotocol/server-everything@2026.8.31 \
	@modelcontextprotocol/server-filesystem@2026.8.31 \
	@modelcontextprotocol/server-memory@2026.8.31 \
	@modelcontextprotocol/server-sequential-thinking@2026.8.31
AGENTS := .cache/agents
.PHONY: others
others: python
	@[ -f $(LITELLM)/done ] || { python3 -m venv $(LITELLM) && \
		$(LITELLM)/bin/python -m pip install -q 'litellm[proxy]==1.106.2' && \
		touch $(LITELLM)/done; } || \
		{ rm -rf $(LITELLM); echo "make: no LiteLLM, so no run goes through its proxy"; }
	@[ -f $(AIMOCK) ] || { command -v npm >/dev/null 2>&1 || { \
		command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -y -qq npm >/dev/null; }; \
		npm install --silent --no-audit --no-fund --no-save --prefix .cache/aimock \
		@copilotkit/aimock@1.43.0; } || echo "make: no aimock, so no run uses its dialects"
	@[ -f $(AXE) ] || npm install --silent --no-audit --no-fund --no-save --prefix .cache/axe \
		axe-core@4.14.1 || echo "make: no axe-core, so no page is tried for accessibility"
	@[ -f $(MCP)/done ] || { python3 -m venv $(MCP)/python && \
		$(MCP)/python/bin/python -m pip install -q $(MCP_PYTHON) && \
		npm install --silent --no-audit --no-fund --no-save --prefix $(MCP) $(MCP_NODE) && \
		touch $(MCP)/done; } || { rm -rf $(MCP); echo "make: no MCP servers, so none is called"; }
	@command -v prometheus >/dev/null 2>&1 || { \
		command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null; } || \
		echo "make: no Prometheus, so it scrapes no run"
	@examples/agents/install.sh $(AGENTS) openai-agents langgraph npm || \
		echo "make: some agents are missing, so they play no trial"

# All agents that the page about agents names. They take minutes to install, and 5 GB.
.PHONY: strangers
strangers:
	-examples/agents/install.sh $(AGENTS)
	ASSAY_AGENTS=$(CURDIR)/$(AGENTS) ASSAY_AGENTS_ALL=1 \
		$(GO) test -run TestAgentsOfOthers -timeout 0 -v ./cmd/assay

lint:
	@out=$$($(TOOLS) gofumpt -l .); [ -z "$$out" ] || { echo "not formatted (make format):"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...

format:
	$(TOOLS) gofumpt -w .

# Each fuzzer for a while; FUZZTIME=10m for a long one.
FUZZTIME ?= 20s
fuzz:
	@for p in $$($(GO) list ./...); do \
		for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$($(GO) list -f '{{.Dir}}' $$p)/*_test.go 2>/dev/null | sed 's/func //'); do \
			echo "$$p $$f"; $(GO) test -run XXX -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

# The fuzzers of files that users write. An ordinary test reads their seeds, which include mutated files.
.PHONY: fuzz-files
fuzz-files:
	@for f in task/yamldoc:FuzzDecode experiment/plan:FuzzLoad task/library:FuzzTaskFile \
		task/library:FuzzImport task/library:FuzzOwnFiles task/library:FuzzRegistry; do \
		$(GO) test -run XXX -fuzz "^$${f#*:}$$" -fuzztime $(FUZZTIME) ./internal/$${f%:*} || exit 1; \
	done

# The soak's long form, for the night: half an hour under all faults at random.
.PHONY: soak
soak:
	ASSAY_SOAK=30m $(GO) test -v -run '^TestSoak$$|^TestAgentsBehind' -timeout 60m ./cmd/assay

# Benchmarks of single packages: see docs/measured.md. `go run ./tools/bench`
# measures the whole program.
bench:
	$(GO) test -run XXX -bench . -benchtime 1s ./...

ci:
	./.ci/run
