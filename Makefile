# Short names for the things one does here. The build itself is CMake: see CMakePresets.json.
.DEFAULT_GOAL := help
.PHONY: help demo test mutants format lint bench clean
JOBS ?= $(shell nproc)
SOURCES = git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc'

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

demo:  ## build the command line program and run a small study with it
	@tools/setup
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_cli
	build/release/affpcl run examples/demo.toml --out build/demo --force

test:  ## build everything, run all tests, then the mutants
	@tools/setup python
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -j $(JOBS)
	@$(MAKE) --no-print-directory mutants

mutants:  ## break the code in known ways and see that the tests notice (ONE=name: only that one)
	@tools/setup
	@python=$$(cat build/.python) && $$python tests/mutants/run.py -j $(JOBS) $(ONE)

format:  ## lay out all C++ files
	@tools/setup lint
	@$(SOURCES) | xargs -0 -r clang-format -i

lint:  ## check layout, then look for likely mistakes
	@tools/setup lint
	@$(SOURCES) | xargs -0 -r clang-format --dry-run -Werror
	@cmake --preset dev >build/dev.log || { cat build/dev.log; exit 1; }
	@$(SOURCES) | grep -z '^affpcl/.*\.cc$$' | grep -zvE '_(test|bench)\.cc$$' | \
	  xargs -0 -r -n 1 -P $(JOBS) sh -c 'echo "$$0"; clang-tidy -p build/dev --quiet --warnings-as-errors="*" "$$0" 2>/dev/null'

bench:  ## measure the kernels and a round of AffPCL on this machine
	@tools/setup bench
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_bench
	build/release/affpcl_bench

clean:  ## remove everything that was built
	rm -rf build
