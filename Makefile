# Every command of the project. `make help` lists them; the environment is made on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

BUILDER ?= buildah
IMAGE ?= fairpool:0.1.0
ENGINE_IMAGE ?= fairpool-engine:0.1.0
COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test kubernetes test-engine engine test-cluster image engine-image lint bench bench-quick bench-counts bench-load bench-operator bench-profile bench-scheduler format lock image-locks

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## Replay real traffic in arrival order and fairly, and show the difference
	@$(BIN)/fairpool demo

test: kubernetes  ## Run every test but those of test-engine and test-cluster
	@$(BIN)/pytest

kubernetes: $(READY)  ## Build the tests' Kubernetes, unless it is in the cache or KUBEBUILDER_ASSETS has it
	@PYTHONPATH=tests $(BIN)/python -m support.cluster.programs

test-engine: engine  ## Run the tests that have a real engine, llama.cpp's server, behind the gateway
	@$(BIN)/pytest tests/engine

engine: $(READY)  ## Build that engine, unless it is in the cache (needs cmake and a C++ compiler)
	@PYTHONPATH=tests $(BIN)/python -m support.llama.build

# By env and not by a shell, which would pass on none of make's signals.
test-cluster: $(READY)  ## Run the tests on a whole cluster, with images and pods (root, Linux)
	@env PYTHONPATH=tests $(BIN)/python -m support.node.alone tests/node

image:  ## Build the image of both programs: make image BASE=IMAGE [IMAGE=NAME:TAG] [BUILDER=podman]
	@$(if $(BASE),,$(error BASE is missing, an image with Python 3.11 or later and its venv module: make image BASE=python:3.13-slim))
	@$(BUILDER) build $(BUILD_OPTIONS) --file Containerfile --build-arg BASE=$(BASE) --tag $(IMAGE) .

engine-image: $(filter image,$(MAKECMDGOALS))  ## Build the simulated engine's image on that one: make engine-image [IMAGE=…] [ENGINE_IMAGE=…]
	@$(BUILDER) build $(BUILD_OPTIONS) --file lab/Containerfile --build-arg IMAGE=$(IMAGE) --tag $(ENGINE_IMAGE) lab

lint: $(READY)  ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY)  ## Measure the gateway beside its peers, for docs/performance.md (45 minutes at most; a C compiler, nginx)
	@$(BIN)/python -m fairpool_lab.bench.gateway --page docs/performance.md $(if $(RECORD),--record)

bench-quick: $(READY)  ## Measure it beside nginx in five minutes, against the ratios recorded by make bench RECORD=1
	@$(BIN)/python -m fairpool_lab.bench.gateway --quick $(if $(RECORD),--record)

bench-counts: $(READY)  ## Count the instructions of a request and of decisions, against those recorded by RECORD=1 (valgrind)
	@$(BIN)/python -m fairpool_lab.bench.counts $(if $(RECORD),--record)

bench-profile: $(READY)  ## Show where the gateway's processor time goes, part by part (a C compiler)
	@$(BIN)/python -m fairpool_lab.bench.profile

bench-load: $(READY)  ## Measure what crowds cost in memory, and the tenant beside them
	@$(BIN)/python -m fairpool_lab.bench.load

bench-operator: kubernetes  ## Measure the operator with 500 pools and 2,000 tenants, from cold and at rest (some minutes)
	@PYTHONPATH=tests $(BIN)/python -m support.cluster.bench_operator

bench-scheduler: $(READY)  ## Measure decisions per second and memory per tenant
	@$(BIN)/python -m fairpool_lab.bench.scheduler

format: $(READY)  ## Format the code
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

lock: $(READY)  ## Choose the newest versions of all dependencies again
	@$(COMPILE) pyproject.toml --extra lab --extra tracing --extra validate --extra dev --upgrade -o requirements.lock
	@$(MAKE) --no-print-directory image-locks

image-locks: $(READY)  ## Take from requirements.lock what the image has, and what builds it
	@$(COMPILE) pyproject.toml --extra tracing --constraint requirements.lock -o requirements.image.lock
	@printf 'hatchling\n' | $(COMPILE) - --constraint requirements.lock -o requirements.build.lock

$(READY): requirements.lock pyproject.toml
	@echo "Making the environment in $(VENV) (a minute or two)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "FairPool needs Python 3.11 or later: make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --requirement requirements.lock
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)
