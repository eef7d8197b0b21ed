# What a person types in this repository. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := uv pip compile --quiet --generate-hashes --no-emit-index-url --universal --python-version 3.11

.PHONY: help install demo up images test ready prove chaos soak fuzz bench screenshots check lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

install: $(STAMP) ## everything into .venv, exactly the locked versions

$(STAMP): requirements-dev.txt requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Paceline needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo missing)." >&2; \
	    echo "Name another one: make install PYTHON=/path/to/python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: install ## three simulated numbers, 200 messages, a progress bar
	@$(BIN)/paceline demo $(ARGS)

up: install ## the whole platform, e.g. make up ARGS="--sessions 3 --policy demo"
	@$(BIN)/paceline up $(ARGS)

images: ## the container images of the services and of the workers (needs Docker)
	docker build --file deploy/Dockerfile --target paceline --tag paceline:0.1.0 .
	docker build --file deploy/Dockerfile --target worker --tag whatsapp-worker-image:1.0.0 .
	docker build --file deploy/Dockerfile --target worker-baileys --tag whatsapp-worker-baileys:1.0.0 .

test: install ## all checks and all tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync check ready
	tools/run-tests $(ARGS)

# What the tests use beside Python. Each says what it could not get, and whose tests are skipped for it.
ready:
	@tools/ensure-redis
	@tools/ensure-docker
	@tools/ensure-node
	@tools/ensure-prometheus
	@tools/ensure-browser

prove: install ## the World over thousands of seeds, then every planted bug; ARGS="--seeds=0:20000" for others
	@$(BIN)/python -m paceline.testing --seeds=drills:3000 --planted $(ARGS)

chaos: install ## real processes hurt at random under load; ARGS="--minutes 60 --seed 7" (power cuts and full disks need root)
	@cd tests && ../$(BIN)/python -m chaos $(ARGS)

soak: install ## a month of a thousand numbers in virtual time, hours; ARGS="--numbers 100 --messages 30000" for less
	@$(BIN)/python -m paceline.testing.soak $(ARGS)

fuzz: install ## thousands of requests nobody would think of, against all three services
	@cd tests && ../$(BIN)/python -m fuzz $(ARGS)

bench: install ## how fast it is, side by side with others, as tables (docs/performance.md); needs wrk and node
	@command -v wrk > /dev/null || { echo "make bench needs wrk (Debian: apt-get install wrk)" >&2; exit 1; }
	cd bench/node && npm install --no-save --ignore-scripts --silent
	@tools/ensure-node
	for each in dispatch intake job peers memory; do $(BIN)/python bench/$$each.py $(ARGS); done

screenshots: install ## a picture of every page of the dashboard into docs/pictures (needs chromium)
	@tools/ensure-browser
	@cd tests && ../$(BIN)/python -m browser $(ARGS)

check: install ## format, lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: ## lock requirements*.in anew (needs uv)
	$(LOCK) requirements.in -o requirements.txt
	$(LOCK) requirements-dev.in -o requirements-dev.txt
	cd bench/peers && $(LOCK) requirements.in -o requirements.txt

clean: ## remove the virtual environments and caches; data directories stay
	rm -rf $(VENV) bench/.peers-venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
