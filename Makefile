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
