# Bare `make` prints the menu.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := menu

TAGS      := duckdb_arrow
GO        := go
GOTEST    := $(GO) test -tags $(TAGS)
PLATFORM  := $(shell $(GO) env GOOS)_$(shell $(GO) env GOARCH)
EXTDIR    := .extensions
EXTFILE   := $(EXTDIR)/ducklake.duckdb_extension
LOCKED     = $(shell awk '$$1 == "ducklake" && $$3 == "$(PLATFORM)" { print $$4 }' extensions.lock)
VERSIONED  = $(shell awk '$$1 == "ducklake" && $$3 == "$(PLATFORM)" { print $$2 }' extensions.lock)

.PHONY: menu
menu: ## print this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: extensions
extensions: ## fetch the signed ducklake extension with pip and check its digest
	@if [ -z "$(LOCKED)" ]; then \
	  echo "extensions: extensions.lock has no ducklake for $(PLATFORM); supported: $$(awk '$$1 == "ducklake" { print $$3 }' extensions.lock | xargs)" >&2; exit 1; fi
	@if [ -f $(EXTFILE) ] && [ "$$(python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' $(EXTFILE))" = "$(LOCKED)" ]; then exit 0; fi; \
	echo "extensions: fetching ducklake $(VERSIONED) for $(PLATFORM)" >&2; \
	tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$$tmp" duckdb-extension-ducklake==$(VERSIONED); \
	python3 -m zipfile -e "$$tmp"/*.whl "$$tmp/wheel"; \
	mkdir -p $(EXTDIR); \
	cp "$$tmp/wheel/duckdb_extension_ducklake/extensions/v$(VERSIONED)/ducklake.duckdb_extension" $(EXTFILE).new; \
	got=$$(python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' $(EXTFILE).new); \
	if [ "$$got" != "$(LOCKED)" ]; then rm -f $(EXTFILE).new; \
	  echo "extensions: ducklake $(VERSIONED) for $(PLATFORM) has digest $$got, extensions.lock says $(LOCKED); it was not installed" >&2; exit 1; fi; \
	mv $(EXTFILE).new $(EXTFILE)

.PHONY: build
build: ## build bin/leapview
	$(GO) build -tags $(TAGS) -o bin/leapview ./cmd/leapview

.PHONY: check
check: extensions ## format, vet and the dependency rule: the gate of every commit
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt wants changes in:" $$bad >&2; exit 1; fi
	$(GO) vet -tags $(TAGS),planted,bench ./...
	$(GOTEST) ./tests/arch/

.PHONY: arch
arch: ## the dependency rule and the package docs
	$(GOTEST) ./tests/arch/

.PHONY: test
test: check ## everything that must pass: check, all tests, the demo without a terminal
	$(GOTEST) -timeout 20m ./...
	$(MAKE) --no-print-directory demo-check

.PHONY: race
race: extensions ## all tests under the race detector
	$(GOTEST) -race -timeout 40m ./...

.PHONY: contract
contract: extensions ## every port's suite, on its twin and on its real adapter
	$(GOTEST) ./tests/contract/

.PHONY: acceptance
acceptance: extensions ## the lines of the storage contract, on the real engine and a real lake
	$(GOTEST) -v ./tests/acceptance/

.PHONY: planted
planted: extensions ## plant each kept bug and prove that its test catches it
	$(GO) test -tags $(TAGS),planted -count=1 -timeout 60m -v ./tests/planted/

.PHONY: bench
bench: extensions ## ratios against the raw engine on the same data, in one run
	$(GO) test -tags $(TAGS),bench -count=1 -timeout 60m -run '^TestRatios$$' -v ./tests/bench/

.PHONY: golden
golden: ## rewrite the golden files from what the code says now
	$(GOTEST) ./tests/... ./adapters/... ./domain/... -run Golden -update

DEMO_DIR := .demo

.PHONY: demo
demo: extensions build ## the main job on the real example data: deploy, refresh, serve
	@mkdir -p $(DEMO_DIR)
	bin/leapview deploy examples/flights --data-dir $(DEMO_DIR)/data --extensions $(EXTDIR)
	bin/leapview refresh flights --data-dir $(DEMO_DIR)/data --extensions $(EXTDIR)
	bin/leapview serve --data-dir $(DEMO_DIR)/data --extensions $(EXTDIR)

.PHONY: demo-check
demo-check: extensions build ## the demo without a terminal: known values over HTTP, then a clean stop
	$(GOTEST) -count=1 -run '^TestDemo$$' ./tests/e2e/

.PHONY: clean
clean: ## remove what the other targets made, the extension excepted
	rm -rf bin $(DEMO_DIR)
