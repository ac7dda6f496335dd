# The commands of this repository; `make` lists them.

SHELL := /bin/bash
.NOTPARALLEL:
.DEFAULT_GOAL := help

# All Swift files but those that a generator or the extraction of documents wrote; also new ones that git does not know yet.
swift_files = $(filter-out %.pb.swift %.connect.swift %.mock.swift Tests/DocumentationTests/Extracted/%,$(wildcard \
	$(shell git ls-files --cached --others --exclude-standard -- '*.swift')))

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

# The demo alone, as quickly as can be: without the command line, HTTP/3, the generators and what only tests need, and without
# what debuggers and editors read. In a folder of its own, as a plan for one product must not stay in .build (see .ci/build).
demo = --product Demo --scratch-path .build-demo --disable-index-store -Xswiftc -gnone -Xcc -g0

.PHONY: demo
demo: ## Run the demo against a server inside it
	@.ci/setup demo
	@echo "Building the demo (the first build takes some minutes)"
	@.ci/build $(demo)
	@.build-demo/debug/Demo

.PHONY: test
test: ## Check everything: style, generated code, tests
	@.ci/test

# The tests that run under address sanitizer: the C sessions byte by byte and datagram by datagram, compression, and damaged
# inputs for all decoders.
http3 = HTTP3(Exchange|FlowControl|Response|Handshake|Closing|Network|Offload|ManyStreams|HostileServer|EarlyData|PathSize|Pacing)Tests
structs = GuardedDecodingTests|RequiredCheckTests|CMessage(Misuse)?Tests|DynamicMessageTests
sanitized = HTTP2(Session|Exchange|Reset|Lifecycle|FlowControl|Output)Tests|$(http3)|FuzzTests|CompressionPoolTests|GRPCStatusTests|$(structs)
# The modules that have these tests. Nothing else is built.
sanitized_modules = $(shell git grep --untracked -lE 'class \w*($(sanitized))\b' -- 'Tests/*.swift' | cut -d/ -f2 | sort -u)
# With lld: gold, the default on Linux, warns of each function of the sanitizer, "Cannot export local symbol".
asan = --sanitize=address --scratch-path .build-asan -Xswiftc -use-ld=lld
# Functions take more stack with the sanitizer.
unsanitized = testDeepestMessageFitsASmallStack
# How many damaged inputs the decoders get.
rounds ?= 2000

.PHONY: sanitize
sanitize: build-sanitized ## Run the tests of C code and of decoders under address sanitizer
	@ASAN_OPTIONS=detect_leaks=0 CONNECT_FUZZ_ROUNDS=$(rounds) CONNECT_TESTS='$(sanitized_modules)' \
		swift test --skip-build $(asan) --disable-swift-testing --filter '$(sanitized)' --skip '$(unsanitized)'

.PHONY: build-sanitized
build-sanitized:
	@echo "Building the tests with address sanitizer (the first build takes some minutes)"
	@CONNECT_TESTS='$(sanitized_modules)' .ci/build --product connect-swift-linuxPackageTests $(asan)

# Without what looks at glibc's malloc, in whose place the sanitizer has its own.
tsan = --sanitize=thread --scratch-path .build-tsan

.PHONY: test-threads
test-threads: setup venv check-generated ## Run all tests under thread sanitizer (many minutes)
	@echo "Building the tests with thread sanitizer (the first build takes many minutes)"
	@CONNECT_NASTY_PROTOS=yes .ci/build --build-tests $(tsan)
	@TSAN_OPTIONS="suppressions=$(CURDIR)/Tests/ThreadSanitizer/suppressions.txt history_size=4 $$TSAN_OPTIONS" \
		swift test --skip-build $(tsan) --skip FreedMemoryTests

traits = --traits Brotli,Zstd,Snappy,Configuration --scratch-path .build-traits

.PHONY: test-traits
test-traits: ## Run the tests of compression and of settings with all package traits (many minutes)
	@.ci/setup traits
	@echo "Building the tests with all traits (the first build takes some minutes)"
	@.ci/build --build-tests $(traits)
	@swift test --skip-build $(traits) --disable-swift-testing --filter 'ConnectTests\..*Compression|ConnectConfigurationTests'

.PHONY: fuzz
fuzz: setup ## Feed a million damaged inputs to the decoders, under address sanitizer
	@$(MAKE) --no-print-directory sanitize sanitized=FuzzTests rounds=1000000

.PHONY: properties
properties: setup venv ## Compare ten thousand random messages with SwiftProtobuf's, chains of interceptors with a model, xDS with grpcio
	@.ci/build --build-tests
	@CONNECT_PROPERTY_ROUNDS=10000 swift test --skip-build --disable-swift-testing --filter 'InteroperationTests|RandomChainTests|ChainPropertyTests|XDSOracleTests|TraceMemoryTests'

# The benchmarks: which rows, how often, for how long; where to save results, what to compare with.
rows ?=
repetitions ?= 3
seconds ?= 2
save ?=
with ?=
benchmarks = Tests/Benchmarks
# Builds these products.
benchmark = for product in $(1); do \
	swift build -q -c release --package-path $(benchmarks) --product $$product --disable-build-manifest-caching || exit 1; done

# How many seeds, or which one. Meshes are clients that control planes configure.
seeds ?= 1000

.PHONY: explore
explore: ## Run random clusters, meshes, faults and interceptors against what must hold: seeds=N, or seed=S or mesh=S for one of them
	@.ci/setup build
	@echo "Building (the first build takes some minutes)"
	@swift build -q -c release --scratch-path .build-explore --product Explore
	@$(if $(mesh),,.build-explore/release/Explore $(if $(seed),seed $(seed),$(seeds)))
	@$(if $(seed),,.build-explore/release/Explore mesh $(if $(mesh),1 $(mesh),$(seeds)))
	@$(if $(seed)$(mesh),,for s in 1 2 7; do .build-explore/release/Explore planted 1000 $$s || exit 1; done)

.PHONY: bench
bench: venv ## Measure what calls cost, side by side with peers (many minutes)
	@.ci/setup bench
	@echo "Building the benchmarks (the first build takes many minutes)"
	@$(call benchmark,CannedServer ConnectBench GRPCSwiftBench)
	@$(benchmarks)/bench.py --rows '$(value rows)' --repetitions $(repetitions) --seconds $(seconds) \
		$(if $(save),--save '$(save)') $(if $(with),--compare '$(with)')

.PHONY: bench-cli
bench-cli: venv ## Measure connectrpc load beside h2load, and connectrpc call beside buf curl (many minutes)
	@.ci/setup bench
	@echo "Building connectrpc and the server (the first build takes many minutes)"
	@$(release) -q
	@$(call benchmark,CannedServer)
	@$(benchmarks)/bench_cli.py --repetitions $(repetitions)

# How many functions to list for each client.
functions ?= 0

.PHONY: bench-instructions
bench-instructions: bench-build ## Count the instructions and allocations of calls, which noise does not change
	@$(benchmarks)/instructions.py --rows '$(or $(value rows),interceptors$$)' --functions $(functions)

.PHONY: bench-build
bench-build:
	@.ci/setup bench-instructions
	@echo "Building the benchmarks (the first build takes many minutes)"
	@$(call benchmark,CannedServer ConnectBench)

.PHONY: costs
costs: bench-build ## Count what calls cost, and write it to Tests/Benchmarks/thresholds and the tables of documents
	@$(benchmarks)/costs.py --write

.PHONY: check-costs
check-costs: bench-build ## Count what calls cost, and compare with Tests/Benchmarks/thresholds
	@$(benchmarks)/costs.py

.PHONY: bench-messages
bench-messages: ## Measure the messages of libprotobuf-c, side by side with SwiftProtobuf's
	@.ci/setup build
	@echo "Building the benchmark (the first build takes some minutes)"
	@swift build -q -c release --package-path $(benchmarks) --product MessageBench
	@$(benchmarks)/.build/release/MessageBench --rows '$(value rows)'

.PHONY: bench-picks
bench-picks: ## Measure what it costs to choose an endpoint among 10,000: at most 150 ns
	@.ci/setup build
	@echo "Building the benchmark (the first build takes some minutes)"
	@swift build -q -c release --package-path $(benchmarks) --product PickBench
	@$(benchmarks)/.build/release/PickBench --limit 150

.PHONY: bench-mesh
bench-mesh: ## Measure what it takes to apply 10,000 endpoints of a control plane
	@.ci/setup build
	@echo "Building the program (the first build takes many minutes)"
	@swift build -q -c release --scratch-path .build-explore --product Explore
	@.build-explore/release/Explore mesh-size 10000

.PHONY: bench-compare
bench-compare: bench ## Measure, and compare with the results in the file `with`

# Where `make install` puts things; DESTDIR stands in front of it, for packages.
prefix ?= /usr/local
release = swift build -c release --product connectrpc

.PHONY: install
install: ## Build connectrpc and install it with completions and manual page: prefix=/usr/local
	@.ci/setup build
	@echo "Building connectrpc (the first build takes many minutes)"
	@$(release) -q
	@Sources/connectrpc/install.sh "$$($(release) --show-bin-path)/connectrpc" '$(DESTDIR)$(prefix)'

.PHONY: lint
lint: ## Check the style of all Swift files, imports, which folders use which, the sizes of files and types, how tests start processes, and tables of costs
	@echo "Checking the style"
	@swift format lint --strict $(swift_files)
	@.ci/check-imports --self-test
	@.ci/check-imports
	@.ci/check-arrows --self-test
	@.ci/check-arrows
	@.ci/check-rooms --self-test
	@.ci/check-rooms
	@git grep --untracked -nE '\bProcess(\(\)|\.(init|run|launchedProcess)\b)|: Process = \.|\.readabilityHandler' \
		-- 'Tests/*.swift' ':!Tests/LoopbackServer/Process+Start.swift'; \
		[[ $$? == 1 ]] || { echo "Tests use Process.start and FileHandle.readOnThread instead"; exit 1; }
	@$(benchmarks)/costs.py --self-test
	@$(benchmarks)/costs.py --tables

.PHONY: format
format: ## Format all Swift files
	@swift format --in-place $(swift_files)

.PHONY: generate
generate: ## Generate the Swift messages, stubs and mocks, and the C structs, of Protos/
	@Codegen/generate.sh

.PHONY: check-generated
check-generated: ## Check that the generated code is up to date
	@echo "Checking the generated code"
	@Codegen/check-generated.sh

.PHONY: check-plugins
check-plugins: setup ## Try the plugins in a package outside of this one (some minutes)
	@Codegen/test-fresh-package.sh

.PHONY: packages
packages: ## Say what a package that links Connect and ConnectNIO resolves, how long it builds and how large it is (many minutes)
	@.ci/setup build
	@.ci/check-packages --build

.PHONY: static
static: ## Build a program without shared libraries, and run it in an empty root (many minutes)
	@.ci/setup build
	@.ci/check-static

.PHONY: libraries
libraries:
	@.ci/setup build
	@echo "Building the libraries (the first build takes some minutes)"
	@.ci/build

.PHONY: docs
docs: libraries ## Build the documentation of the libraries as a static site
	@.ci/symbol-graphs
	@.ci/docs

.PHONY: check-doc-comments
check-doc-comments: libraries ## Check that all that is public has a doc comment
	@.ci/check-doc-comments --self-test
	@.ci/symbol-graphs
	@.ci/check-doc-comments

.PHONY: api
api: libraries ## Write what is public in the libraries to Tests/API
	@.ci/symbol-graphs
	@.ci/check-api --write

.PHONY: check-api
check-api: libraries ## Compare what is public in the libraries with Tests/API
	@.ci/check-api --self-test
	@.ci/symbol-graphs
	@.ci/check-api

.PHONY: venv
venv: setup ## Install the Python servers of the tests into .venv
	@Tests/EndToEndTests/Servers/install.sh

.PHONY: setup
setup: ## Check the system packages; install what is missing if root on Debian
	@.ci/setup

.PHONY: clean
clean: ## Remove everything that these targets made
	@rm -rf .build .build-asan .build-demo .build-docs .build-explore .build-static .build-tsan .build-traits .build-generators .build-release \
		$(benchmarks)/.build Tests/NastyProtos .venv
