# Two commands set everything up on a fresh machine with Python 3.11 to 3.14: `make serve` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST = $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
TRAIN = $(BIN)/python -m model train $(if $(DATA),--data $(DATA))
MODELS := $(notdir $(wildcard artifacts/*))
# ONNX Runtime for this machine: the CPU's is a tenth as large as the one with CUDA's libraries.
PROVIDER := $(if $(shell command -v nvidia-smi),cuda,cpu)
TORCH := $(shell grep -o 'torch==[0-9.]*' pyproject.toml)
ATHERIS := $(shell grep -o 'atheris~=[0-9.]*' pyproject.toml)
# Each service that a test starts would compile all of its modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help serve test test-fast fuzz soak check format export model train bench gpu lecture docs screenshots sbom audit lock clean

help: ## Show this help.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/' | expand -t 12

serve: $(VENV)/$(if $(LANGUAGES),dev,serve).installed ## Serve on http://127.0.0.1:8000 (installs without torch); with make serve LANGUAGES=en,fr,uk good models, which are fetched once.
	$(BIN)/python -m service $(if $(LANGUAGES),--languages $(LANGUAGES)) $(if $(SIZE),--size $(SIZE))

test: $(VENV)/dev.installed ## Run all tests, three at a time: on two cores, as many of them wait for processes.
	$(PYTEST) --numprocesses 3 $(if $(CI),--durations 30 -rs)

test-fast: $(VENV)/dev.installed ## Run the tests that start no process, need no browser and are not slow: some three minutes on two cores.
	$(PYTEST) --numprocesses 2 -m 'not process and not browser and not slow'

fuzz: $(VENV)/dev.installed ## Fuzz every reader of foreign bytes, ten minutes each (make fuzz TARGET=pdf MINUTES=1; docs/trust.md).
	$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet $(ATHERIS) || echo 'No atheris here: hypothesis fuzzes, without coverage'
	$(BIN)/python -m tests.fuzz $(TARGET) $(if $(MINUTES),--minutes $(MINUTES))

soak: $(VENV)/dev.installed ## Let 100 clients ask a real service while it is made to fail (make soak MINUTES=5, or REQUESTS=200000).
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),5) $(if $(REQUESTS),--requests $(REQUESTS)) $(if $(SEED),--seed $(SEED)) $(if $(WRITE),--write $(WRITE))

check: $(VENV)/dev.installed ## Lint, check formatting, types and import rules.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.installed ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

export: $(VENV)/dev.installed ## Export the shipped artifacts anew, each in its own place.
	set -e; for model in $(MODELS); do $(BIN)/python -m export artifacts/$$model artifacts/$$model; done

model: $(if $(FROM),$(VENV)/dev.installed,$(VENV)/bin/python) ## Import a model and serve it from then on (make model lists good ones; docs/bring-your-model.md).
	@test -n "$$FROM" || { $(BIN)/python -m model.importing.recommended; exit 2; }
	$(BIN)/python -m export.importing "$$FROM" $(if $(NAME),--name "$$NAME") $(if $(PRECISION),--precision $(PRECISION)) $(if $(OVERWRITE),--overwrite) $(OPTIONS)

train: $(VENV)/dev.installed ## Train the shipped models further, into runs/, with the corpora in DATA (make train DATA=path).
	set -e; for model in $(filter translate-%,$(MODELS)); do $(TRAIN) artifacts/$$model --start artifacts/$$model; done
	$(BIN)/python -m model import sentence-transformers/all-MiniLM-L6-v2 runs/all-MiniLM-L6-v2/checkpoint
	$(TRAIN) artifacts/sentiment-imdb --start runs/all-MiniLM-L6-v2/checkpoint

bench: $(VENV)/dev.installed ## Measure against CTranslate2 and LibreTranslate (make bench DATA=path, which needs wrk; QUICK=1: the decoder alone).
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA)) $(if $(QUICK),--quick)

gpu: $(VENV)/dev.installed ## Measure on a GPU beside CTranslate2, and write docs/gpu.md (make gpu DATA=path; tried without one: PROVIDER=cpu).
	$(BIN)/python -m benchmarks.gpu prepare $(if $(DATA),--data $(DATA))
	$(BIN)/python -m benchmarks.gpu all --provider $(PROVIDER) $(if $(WORKS),--works $(WORKS))

lecture: $(VENV)/dev.installed ## Train and compare every system of the lecture (make lecture DATA=path, or QUICK=1 for minutes).
	$(BIN)/python -m benchmarks lecture $(if $(DATA),--data $(DATA)) $(if $(QUICK),--quick)

docs: $(VENV)/dev.installed ## Write the tables of settings and scores in README.md and docs anew.
	$(BIN)/python -m docs.generate

screenshots: $(VENV)/dev.installed ## Take the pictures in docs/images anew (needs Chromium).
	$(BIN)/python -m docs.screenshots

sbom: $(VENV)/dev.installed ## Write what each image is made of (CycloneDX), and the texts of all licences, into sbom/.
	mkdir -p sbom
	set -e; for lock in cpu cuda; do $(BIN)/python -m docs.sbom $$lock > sbom/attend-$$lock.cdx.json; done
	$(BIN)/python -m docs.licences > sbom/licences.txt

audit: $(VENV)/bin/python ## Ask for known weaknesses of the locked packages; without a network, say so.
	sh .ci/audit $(BIN)/python

lock: $(VENV)/bin/python ## Resolve all dependencies anew, into requirements/ (UPGRADE=1 for newer versions).
	$(BIN)/python -m pip install --quiet uv
	set -e; for extra in cpu cuda dev; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate $(if $(UPGRADE),--upgrade) \
	    --custom-compile-command 'make lock' --no-emit-package torch --extra $$extra --output-file requirements/$$extra.txt pyproject.toml; \
	done

clean: ## Remove the virtual environment and caches.
	rm -rf $(VENV) .bench .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 15) else "attend needs Python 3.11 to 3.14, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

# Each lock has everything that it needs, with hashes. onnxruntime and onnxruntime-gpu install the same package, so that
# one must go before the other comes.
define install
	$(BIN)/python -m pip uninstall --quiet --yes onnxruntime onnxruntime-gpu 2>/dev/null
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement $<
endef

$(VENV)/serve.installed: requirements/$(PROVIDER).txt | $(VENV)/bin/python
	$(install)
	rm -f $(VENV)/dev.installed
	touch $@

$(VENV)/dev.installed: requirements/dev.txt | $(VENV)/bin/python
	$(install)
	$(BIN)/python -m pip install --quiet $(TORCH)
	touch $@ $(VENV)/serve.installed
