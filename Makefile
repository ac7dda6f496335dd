# The commands of this repository; `make` lists them.

SHELL := /bin/bash
.NOTPARALLEL:
.DEFAULT_GOAL := help

# All Swift files but those that a generator wrote; also new ones that git does not know yet.
swift_files = $(filter-out %.pb.swift,$(wildcard \
	$(shell git ls-files --cached --others --exclude-standard -- '*.swift')))

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

# Without the option --product, and without a kept build plan: after `swift build --product` or `swift run`,
# a kept plan holds all products of all dependencies, such as swift-protobuf's C++ protoc.

.PHONY: demo
demo: setup ## Run the demo against a server inside it
	@echo "Building the demo (the first build takes some minutes)"
	@swift build -q --disable-build-manifest-caching
	@"$$(swift build --show-bin-path)/Demo"

.PHONY: test
test: setup venv lint check-generated ## Check everything: style, generated code, tests
	@echo "Building the tests (the first build takes some minutes)"
	@swift build -q --build-tests --disable-build-manifest-caching
	@swift test --skip-build --disable-swift-testing

# How many damaged inputs the fuzz tests try.
rounds ?= 1000000

.PHONY: fuzz
fuzz: setup ## Feed a million damaged inputs to the decoders, under address sanitizer
	@echo "Building the tests with address sanitizer (the first build takes some minutes)"
	@swift build -q --build-tests --sanitize=address --scratch-path .build-fuzz --disable-build-manifest-caching
	@CONNECT_FUZZ_ROUNDS=$(rounds) swift test --skip-build --sanitize=address --scratch-path .build-fuzz \
		--disable-swift-testing --filter DecoderFuzzTests

.PHONY: lint
lint: ## Check the style of all Swift files
	@echo "Checking the style"
	@swift format lint --strict $(swift_files)

.PHONY: format
format: ## Format all Swift files
	@swift format --in-place $(swift_files)

.PHONY: generate
generate: ## Generate the Swift messages of Protos/
	@Codegen/generate.sh

.PHONY: check-generated
check-generated: ## Check that the generated messages are up to date
	@echo "Checking the generated messages"
	@Codegen/check-generated.sh

.PHONY: venv
venv: ## Install the Python servers of the tests into .venv
	@Tests/EndToEndTests/Servers/install.sh

.PHONY: setup
setup: ## Check the system packages; install what is missing if root on Debian
	@.ci/setup

.PHONY: clean
clean: ## Remove everything that these targets made
	@rm -rf .build .build-fuzz .build-protoc-gen .build-release .venv
