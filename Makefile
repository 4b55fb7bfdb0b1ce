# Each target does its own set-up: a Python 3.11 or newer and a package index are all that it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JS := tests/javascript
JS_READY := $(JS)/node_modules/.ready
DEMO := demo-output
RIVALS := rivals-work
REAL := real-work
JOBS ?= 2
PYTEST = $(BIN)/pytest -n $(JOBS) --dist loadgroup --durations=50

export ORT_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-web demo-precision demo-device demo-android test test-full test-slow lint constraints docs site benchmarks benchmarks-real benchmarks-rivals clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: $(READY) $(JS_READY) ## Make the development environment in .venv, and the JavaScript tools beside their tests

# constraints.txt pins every version and the digests of its files, on every system, so that neither a release elsewhere
# nor whoever serves the files changes anything here; `make constraints` renews it. uv comes by the same file.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("bundler needs Python 3.11 or newer; name one with make PYTHON=…" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	awk '/^uv==/,!/\\$$/' constraints.txt > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement constraints.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

# Nobody needs Node.js to work on the rest, so its absence is said and not an error.
$(JS_READY): $(JS)/package.json $(JS)/package-lock.json $(JS)/.npmrc
	@if ! command -v npm >/dev/null; then \
		echo "npm is not here: the JavaScript of web bundles is not linted, and the tests with Node.js, Vite and TypeScript are skipped; install Node.js 20 or newer to have them"; \
	elif npm ci --silent --prefix $(JS) >/dev/null; then touch $@; \
	else echo "npm could not install the tools of $(JS)/package-lock.json: the JavaScript of web bundles is not linted, and the tests with Vite and TypeScript are skipped"; fi

demo: $(READY) ## Build a real trained model for linux-x64, run the bundle, and say where its report is
	$(BIN)/python examples/content_type/fetch_model.py $(DEMO)/magika.onnx
	$(BIN)/bundler build $(DEMO)/magika.onnx --target linux-x64 --output $(DEMO) --package-name content-type
	$(BIN)/bundler verify $(DEMO)/magika-linux-x64
	$(BIN)/python examples/content_type/classify.py $(DEMO)/magika-linux-x64 $(DEMO)/magika.onnx $(DEMO)/config.min.json
	@echo "The report: $(DEMO)/magika-linux-x64.report/report.html"

demo-web: $(READY) ## Build a real image model for browsers, run it in this machine's, and say how to look at its page
	$(BIN)/python examples/text_orientation/fetch_model.py $(DEMO)/orientation.onnx
	$(BIN)/bundler build $(DEMO)/orientation.onnx --target web-webgpu --output $(DEMO)
	$(BIN)/bundler verify $(DEMO)/orientation-web-webgpu
	@echo "The page: $(BIN)/bundler serve $(DEMO)/orientation-web-webgpu"

# Three methods, so that it takes a minute; `auto` alone tries all that suit the target.
demo-precision: $(READY) ## Find the fastest precision of a real model that keeps its answers, on real files
	$(BIN)/python examples/content_type/fetch_model.py $(DEMO)/magika.onnx
	$(BIN)/python examples/content_type/fetch_files.py $(DEMO)/files
	$(BIN)/python examples/content_type/write_samples.py $(DEMO)
	$(BIN)/bundler build $(DEMO)/magika.onnx --target linux-x64 --output $(DEMO) --name magika-small \
		--calibration $(DEMO)/calibration --samples $(DEMO)/held-out \
		--set precision.method=auto --set 'precision.order=["dynamic-int8", "static-int8-full", "static-int8"]' \
		--set accuracy.metric.python=examples/content_type/metric.py:share_right --set accuracy.metric.drop=0.01
	$(BIN)/python examples/content_type/classify.py $(DEMO)/magika-small-linux-x64 \
		$(DEMO)/files/docutils/writers/html5_polyglot/plain.css $(DEMO)/files/sphinx/cmd/build.py $(DEMO)/magika.onnx
	@echo "What was tried: $(DEMO)/magika-small-linux-x64.report/report.html"

demo-device: $(READY) ## Compile that image model for a phone's NPU, run it in emulation, and say what is in the bundle
	$(BIN)/python examples/text_orientation/fetch_model.py $(DEMO)/orientation.onnx
	$(BIN)/python examples/text_orientation/fix_sizes.py $(DEMO)/orientation.onnx $(DEMO)/orientation-fixed.onnx
	$(BIN)/python examples/text_orientation/write_samples.py $(DEMO)/lines
	$(BIN)/bundler build $(DEMO)/orientation-fixed.onnx --name orientation --target snapdragon-8g3 --format files \
		--calibration $(DEMO)/lines/calibration --samples $(DEMO)/lines/held-out \
		--set variants.htp.precision=static-qnn-a16w8 --output $(DEMO)
	$(BIN)/bundler verify $(DEMO)/orientation-snapdragon-8g3
	@echo "How an application opens it: $(DEMO)/orientation-snapdragon-8g3/README.md"
	@echo "What the NPU takes, and the accuracy in emulation: $(DEMO)/orientation-snapdragon-8g3.report/report.html"
	@echo "Other devices: $(BIN)/bundler targets list, or $(BIN)/bundler targets recommend MODEL --device \"Pixel 8 Pro\""

demo-android: $(READY) ## Build that image model as a module for a phone's app, and run its loader on this machine's Java
	$(BIN)/python examples/text_orientation/fetch_model.py $(DEMO)/orientation.onnx
	$(BIN)/python examples/text_orientation/fix_sizes.py $(DEMO)/orientation.onnx $(DEMO)/orientation-fixed.onnx
	$(BIN)/bundler build $(DEMO)/orientation-fixed.onnx --name orientation --target snapdragon-8g3 \
		--package-name com.acme.orientation --output $(DEMO)/android
	$(BIN)/bundler verify $(DEMO)/android/orientation-snapdragon-8g3
	@echo "How an app uses it: $(DEMO)/android/orientation-snapdragon-8g3/README.md"

# Debian's packages are installed where we may; without them the tests that need them are skipped, and say so.
define INSTALL
	@command -v $(1) >/dev/null || [ "$$(uname)" != Linux ] \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && apt-get -qq install -y $(2) >/dev/null; } \
		|| echo "$(2) is not here and cannot be installed: install it to run $(3)"
endef

test: $(READY) $(JS_READY) ## Run the tests of units and some journeys (five minutes on two cores)
	$(call INSTALL,bwrap,bubblewrap,the tests of --sandbox)
	$(PYTEST) -m quick $(PYTEST_FLAGS)

test-full: $(READY) $(JS_READY) ## Run all other tests (some twenty minutes on two cores)
	$(call INSTALL,bwrap,bubblewrap,the tests of --sandbox)
	$(call INSTALL,javac,openjdk-17-jdk-headless,the tests of bundles for Java)
	$(call INSTALL,mvn,maven,the tests of bundles for Java)
	$(call INSTALL,qemu-aarch64-static qemu-aarch64,qemu-user-static,the tests under emulation)
	$(PYTEST) -m "not quick" $(PYTEST_FLAGS)

test-slow: $(READY) ## Of those, run the heavy real parts alone: emulation, gigabytes
	$(call INSTALL,javac,openjdk-17-jdk-headless,the tests of bundles for Java)
	$(call INSTALL,mvn,maven,the tests of bundles for Java)
	$(call INSTALL,qemu-aarch64-static qemu-aarch64,qemu-user-static,the tests under emulation)
	$(PYTEST) -m slow $(PYTEST_FLAGS)

lint: $(READY) $(JS_READY) ## Check style, types, import contracts and the links of the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m docs.site
	@if [ -f $(JS_READY) ]; then \
		$(JS)/node_modules/.bin/tsc --project $(JS) && $(JS)/node_modules/.bin/oxlint --config $(JS)/.oxlintrc.json templates/web examples $(JS); \
	else echo "the JavaScript of web bundles was not checked: its tools are not installed (see above)"; fi

constraints: $(READY) ## Resolve the versions of the development environment anew
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 pyproject.toml --group dev \
		--generate-hashes --no-annotate --no-header --output-file constraints.txt

# The terminals of README.md and docs/ are recorded from the demos, with empty caches: some minutes.
docs: $(READY) ## Write the generated tables, the schemas and the terminals of README.md and docs/ again
	$(BIN)/python -m bundler.catalogue.documents docs
	$(BIN)/python -m bundler.project.documents docs
	$(BIN)/python -m docs.console

site: $(READY) ## Build the documentation as a site in site/
	$(BIN)/python -m docs.site site

benchmarks: $(READY) ## Measure side by side, for benchmarks/RESULTS.md and history.html
	$(BIN)/python benchmarks/run.py

# A run that was stopped, or that used up its time, goes on with what is left.
benchmarks-real: $(READY) ## Build forty real models of public packages for every ecosystem (40 minutes on two idle cores)
	$(BIN)/python benchmarks/run.py --only real --work $(REAL) --resume

# Olive comes into an environment of its own below $(RIVALS), by benchmarks/locks/olive.txt: 5 GB, once.
benchmarks-rivals: $(READY) ## Measure builds beside Olive's, which is installed for it (5 GB)
	$(BIN)/python benchmarks/run.py --only rivals --work $(RIVALS)

clean: ## Remove the environment and all output
	rm -rf $(VENV) $(DEMO) $(RIVALS) $(REAL) site dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis $(JS)/node_modules
