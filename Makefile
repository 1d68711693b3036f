# Short names for the things one does here. The build itself is CMake: see CMakePresets.json.
.DEFAULT_GOAL := help
.PHONY: help demo test mutants format lint sanitize fuzz bench growth features screenshot wheel sdist deb docs clean
JOBS ?= $(shell nproc)
SOURCES = git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc'

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

demo:  ## build the command line program, run a small study with it and make its page
	@tools/setup report
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_cli
	build/release/affpcl run examples/demo.toml --out build/demo --force
	@build/release/affpcl report build/demo || true  # without node it says how to get the page

test:  ## build everything, run all tests, then the mutants
	@tools/setup test
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	@# `make demo` may have built its program before MPI was installed: now it runs under mpirun too.
	@if grep -qs '^MPI_CXX_COMPILER:.*-NOTFOUND' build/release/CMakeCache.txt && command -v mpicxx >/dev/null; then \
	  cmake --preset release >build/release.log && cmake --build --preset release -j $(JOBS) --target affpcl_cli; fi
	ctest --preset dev -j $(JOBS); tests=$$?; $(MAKE) --no-print-directory mutants && exit $$tests

mutants:  ## break the code in known ways and see that the tests notice (ONE=name: only that one)
	@tools/setup
	@python=$$(cat build/.python) && $$python tests/mutants/run.py -j $(JOBS) $(ONE)

format:  ## lay out all C++ files
	@tools/setup lint
	@$(SOURCES) | xargs -0 -r clang-format -i

lint:  ## check layout, then look for likely mistakes
	@tools/setup lint
	@$(SOURCES) | xargs -0 -r clang-format --dry-run -Werror
	@cmake --preset lint >build/lint.log || { cat build/lint.log; exit 1; }
	@$(SOURCES) | grep -zE '^(affpcl|cli)/.*\.cc$$' | grep -zvE '_(test|bench)\.cc$$' | \
	  xargs -0 -r -n 1 -P $(JOBS) sh -c 'echo "$$0"; clang-tidy -p build/lint --quiet --warnings-as-errors="*" "$$0" 2>/dev/null'

sanitize:  ## run the unit and command line tests under ASan and UBSan, those with threads under TSan (an hour)
	@tools/setup test
	cmake --preset asan && cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS); asan=$$?; cmake --preset tsan && cmake --build --preset tsan -j $(JOBS) --target affpcl_tests && \
	  build/tsan/affpcl_tests --gtest_filter='*Team*:*Run*:*Study*:*Fit*:*Ranks*:*Mixed*:*Glmm*:*Collectives*' && exit $$asan

SECONDS ?= 60
fuzz:  ## fuzz every reader of files for SECONDS each
	@tools/setup fuzz
	@cmake --preset fuzz >build/fuzz.log || { cat build/fuzz.log; exit 1; }
	@cmake --build --preset fuzz -j $(JOBS) --target affpcl_fuzz affpcl_cli
	@$$(cat build/.python) tools/fuzz $(SECONDS)

bench:  ## measure affpcl on this machine against NumPy, PyTorch, JAX, Numba, Eigen and the machine's limits; fits against GPBoost and others
	@tools/setup bench
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_cli eigen_round affpcl_bench
	.venv/bin/python bench/compare.py build/release
	build/bench-venv/bin/python bench/fits.py build/release/affpcl --json build/bench/fits.json
	build/release/affpcl_bench

growth:  ## time and memory as powers of agents, rows, columns and features (about ten minutes)
	@tools/setup bench
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_cli
	.venv/bin/python bench/growth.py build/release/affpcl --json build/growth.json

# Without IMAGES: of the two data sets measured here. With it: of your own (tools/features/README.md).
HANDWRITING ?= ../shared/data
features:  ## LeNet-5 features of handwriting for `affpcl reproduce fig-real --data build/features`
	@tools/setup features
	@cmake --preset release -DAFFPCL_FEATURES=ON >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_features
ifdef IMAGES
	build/release/affpcl_features $(IMAGES) $(FEATURES) --out build/features/own
else
	build/release/affpcl_features $(HANDWRITING)/chars74k_hnd/images-idx3-ubyte --with $(HANDWRITING)/chars74k_hnd/labels.csv --out build/features/chars74k
	build/release/affpcl_features $(HANDWRITING)/qmnist_writers/top60-images-idx3-ubyte --with $(HANDWRITING)/qmnist_writers/top60-labels.csv --class digit --out build/features/qmnist
endif

screenshot:  ## draw the README's picture of the demo's page anew
	@tools/setup test
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_cli
	build/release/affpcl run examples/demo.toml --out build/demo --force --quiet --report
	node report/screenshot.mjs build/demo/report.html docs/images/report.png

# A wheel for this Python and this C library; `make wheel FETCH=ALL` links pinned sources instead of the machine's libraries.
FETCH ?= ON
wheel:  ## dist/affpcl-*.whl: the Python package with the program, which needs nothing else of this machine
	@tools/setup wheel
	.venv/bin/python tools/wheel --fetch $(FETCH)

sdist:  ## dist/affpcl-*.tar.gz: the sources, with the report page bundled
	@tools/setup wheel
	node report/build.mjs report/page.html
	.venv/bin/python -m build --sdist --no-isolation --outdir dist .

deb:  ## dist/affpcl_*.deb: the program and the C++ library
	@tools/setup report
	@cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target affpcl_cli
	cd build/release && cpack -G DEB -B $(CURDIR)/dist

docs:  ## build the site of the documentation, with the output of its pages and all links checked
	@tools/setup docs
	@cmake --preset dev >build/dev.log || { cat build/dev.log; exit 1; }
	@cmake --build --preset dev -j $(JOBS) --target affpcl_cli _core
	PYTHONPATH=build/dev/python .venv/bin/python tools/site build/dev/affpcl

clean:  ## remove everything that was built
	rm -rf build
