# A thin front for Meson: each target sets up what it needs, so that on a fresh Debian one command
# is enough. `make help` lists them.

MESON      ?= meson
PREFIX     ?= /usr/local
BUILD      := build/meson
DEPENDENCY := tools/install-deps
# Optimised as a release is, with debug information.
SETUP      := -Doptimization=3

# Where ccache is installed, clones side by side share what was compiled. With its depend mode it takes
# 2 to 7 % of the time to compile what is new, without 20 %.
export CCACHE_NOHASHDIR := 1
export CCACHE_DEPEND    := 1

.PHONY: help build test fast-test core-test fuzz test-matrix demo bench install deb format clean

help:
	@echo 'make build      build/plimsoll, ready to run in place'
	@echo 'make test       every test and check, in every build; about 15 minutes'
	@echo 'make fast-test  the same without the sanitizer builds'
	@echo 'make core-test  a part of it that needs no large packages (torch, a browser, Java...)'
	@echo 'make fuzz       search with libFuzzer for ten minutes per target; over two hours'
	@echo 'make test-matrix  on a fresh Debian 12, 13, testing and sid, as root; over an hour'
	@echo 'make demo       see it work'
	@echo 'make bench      measure its cost, and rewrite docs/benchmarks.md'
	@echo 'make install    into PREFIX (/usr/local), below DESTDIR if that is set'
	@echo 'make deb        Debian packages of this tree in build/deb/'
	@echo 'make format     clang-format on the whole tree'
	@echo 'make clean      remove build/'

build:
	@$(DEPENDENCY) build
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(SETUP) $(BUILD)
	@ninja -C $(BUILD)
	@ln -sfn meson/src/cli/plimsoll build/plimsoll
	@ln -sfn meson/src/guard/libplimsoll-guard.so build/libplimsoll-guard.so
	@mkdir -p build/python
	@tools/link-package
	@ln -sfn ../meson/python/dist-info build/python/plimsoll.dist-info

# Set up for what tests ask for, with their ccache: set up otherwise, it would be compiled twice.
test fast-test: SETUP += -Dwerror=true
test:
	@$(DEPENDENCY) build test arm64
	@$(MAKE) --no-print-directory build SETUP='$(SETUP)'
	@tests/run_all $(PARTS)

# What needs no large packages: .ci/run does it on another Debian too.
core-test: build
	@$(DEPENDENCY) build core-test
	@tests/run_all --core $(PARTS)

fuzz: build
	@$(DEPENDENCY) build test
	@tests/run_all fuzz --fuzz-seconds 600

test-matrix:
	@tools/try-on all $(PARTS)

fast-test:
	@$(DEPENDENCY) build test arm64
	@$(MAKE) --no-print-directory build SETUP='$(SETUP)'
	@tests/run_all --fast

demo: build
	@$(DEPENDENCY) build demo
	@tools/demo

bench: build
	@$(DEPENDENCY) build test bench
	@bench/run

install: build
	@$(MESON) configure $(BUILD) -Dprefix='$(PREFIX)'
	@DESTDIR='$(DESTDIR)' $(MESON) install -C $(BUILD)

deb:
	@$(DEPENDENCY) build deb
	@tools/build-deb

format:
	@$(DEPENDENCY) build test
	@tools/check-format --fix

clean:
	@rm -rf build
