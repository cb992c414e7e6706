# The commands of the project. Each creates .venv and installs its packages.

# Supported versions, newest first. FOUND lists those that can create
# environments.
PYTHONS = python3.13 python3.12 python3.11
FOUND := $(shell for python in $(PYTHONS); do \
    $$python -c 'import ensurepip, venv' >/dev/null 2>&1 && echo $$python; done; \
    true)
PYTHON ?= $(firstword $(FOUND))
VENV = .venv
BIN = $(VENV)/bin
PEERS = .venv-peers
OUT = quickstart
DEV = requirements/dev.txt requirements/beam.txt requirements/parquet.txt \
    requirements/report.txt requirements/demo.txt requirements/serve.txt \
    requirements/hub.txt requirements/openvino.txt requirements/int8.txt \
    requirements.txt
# Idle workers take tests from busy ones.
PARALLEL = -n auto --maxprocesses=4 --dist worksteal
export TF_CPP_MIN_LOG_LEVEL ?= 2

NONE = no Python 3.11 to 3.13 that can create environments: install python3.13 \
and python3.13-venv (or: pyenv install 3.13), or pass PYTHON=its path
NEW_VENV = $(if $(PYTHON),$(PYTHON) -m venv,$(error $(NONE)))

# What requirements/lock.txt pins: all that the scripts need on a CPU.
LOCKED = requirements.txt requirements/report.txt requirements/demo.txt \
    requirements/parquet.txt requirements/serve.txt requirements/hub.txt \
    requirements/openvino.txt requirements/int8.txt

# Tests of numbers, for emulated processors: ids, layers, fused operations,
# losses, a training step, both engines with int8, and each script (goldens).
EMULATED = tests/test_goldens.py tests/data/text/test_ids.py \
    tests/modeling/engines tests/modeling/formats/test_openvino.py \
    tests/modeling/test_fused_ops.py tests/modeling/test_layers.py \
    tests/modeling/test_losses.py tests/inference/test_engines.py \
    tests/training/test_train_step.py

.PHONY: quickstart test test-long avx2 arm64 check docs next lock peers \
    backends tpu gpu clean

quickstart: $(VENV)/run
	examples/quickstart.sh $(BIN)/python $(OUT)

test: $(VENV)/dev
	$(BIN)/python -m pytest $(PARALLEL) -m "not long"

test-long: $(VENV)/dev peers .venv-docs/done $(FOUND:python%=quick-%)
	@echo "quick tests: under $(or $(FOUND),none); not found:" \
	    "$(or $(filter-out $(FOUND),$(PYTHONS)),none)"
	$(BIN)/python -m pytest $(PARALLEL) -m "not long" --perturb=1e-6
	$(BIN)/python -m pytest -v -m long -o faulthandler_timeout=0 --durations=0
	$(if $(shell command -v mmdebstrap),$(MAKE) avx2 arm64,@echo \
	    "avx2, arm64: not run, since mmdebstrap is not installed")

# On an x86-64 CPU without AVX-512, and on an ARM64 CPU, both emulated.
avx2 arm64: %: .emulation/%/done
	nice .emulation/$*/bin/python -m pytest $(PARALLEL) \
	    -m "bits or not long" -o faulthandler_timeout=0 -o timeout=0 $(EMULATED)

# The quick tests with another version of Python, as in `make quick-3.12`.
quick-%: .venv-%/dev
	.venv-$*/bin/python -m pytest $(PARALLEL) -m "not slow and not long"

# The quick tests with TensorFlow's next version; tensorflow-text follows later.
next:
	$(NEW_VENV) .venv-next
	.venv-next/bin/python -m pip install --quiet -r requirements/dev.txt
	.venv-next/bin/python -m pip install --quiet --upgrade --pre tensorflow
	.venv-next/bin/python -m pytest $(PARALLEL) -m "not slow and not long"

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow and not long"

# The site of docs/, in build/docs; a warning is an error.
docs: .venv-docs/done
	.venv-docs/bin/python -m nbconvert --to markdown --log-level WARN \
	    docs/tutorials/*.ipynb
	.venv-docs/bin/zensical build --clean --strict

# Of every supported Python; UPGRADE=--upgrade takes the newest of the packages
# that others bring.
lock: $(VENV)/dev
	$(BIN)/uv pip compile $(LOCKED) --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links --quiet \
	    --custom-compile-command "make lock" $(UPGRADE) -o requirements/lock.txt

# Compile training steps ahead of time for eight TPU v5e cores; for one and
# eight H100. STEP="bert/configs/bert_base.json 256 128 20" compiles a single one.
AHEAD = $(BIN)/python -m benchmarks.ahead_of_time $(PEERS)
tpu: $(VENV)/run $(PEERS)/tpu/done
	$(AHEAD)/tpu/bin/python v5e 8 $(STEP)

gpu: $(VENV)/run $(PEERS)/gpu/done
	$(AHEAD)/gpu/bin/python h100 1 $(STEP)
	$(AHEAD)/gpu/bin/python h100 8 $(STEP)

# Other systems to compare with, and compilers of devices, each in its own
# environment.
peers: $(PEERS)/huggingface/done $(PEERS)/model_garden/done \
    $(PEERS)/keras_hub/done $(PEERS)/onnx/done $(PEERS)/tpu/done \
    $(PEERS)/gpu/done backends

# Keras' other backends, for their test.
backends: $(PEERS)/keras_backends/done

clean:
	rm -rf $(VENV) .venv-3.* .venv-next .venv-docs .emulation $(PEERS) $(OUT)

$(VENV)/run: requirements.txt requirements/report.txt requirements/openvino.txt
	$(if $(wildcard $(BIN)/python),,$(NEW_VENV) $(VENV))
	$(BIN)/python -m pip install --quiet $(^:%=-r %)
	touch $@

$(VENV)/dev: $(DEV)
	$(if $(wildcard $(BIN)/python),,$(NEW_VENV) $(VENV))
	$(BIN)/python -m pip install --quiet -r requirements/dev.txt
	touch $@

.emulation/%/done: tests/emulated_python.sh $(VENV)/dev
	tests/emulated_python.sh $* $(VENV)
	touch $@

.venv-docs/done: requirements/docs.txt
	$(if $(wildcard .venv-docs/bin/python),,$(NEW_VENV) .venv-docs)
	.venv-docs/bin/python -m pip install --quiet -r $<
	touch $@

.PRECIOUS: .venv-%/dev
.venv-%/dev: $(DEV)
	test -x .venv-$*/bin/python || python$* -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet -r requirements/dev.txt
	touch $@

$(PEERS)/huggingface/done: benchmarks/peers/huggingface.txt
	$(NEW_VENV) $(PEERS)/huggingface
	$(PEERS)/huggingface/bin/python -m pip install --quiet -r $<
	touch $@

$(PEERS)/model_garden/done: benchmarks/peers/model_garden.txt requirements.txt
	$(NEW_VENV) $(PEERS)/model_garden
	$(PEERS)/model_garden/bin/python -m pip install --quiet -r requirements.txt
	$(PEERS)/model_garden/bin/python -m pip install --quiet --no-deps -r $<
	touch $@

$(PEERS)/keras_hub/done: benchmarks/peers/keras_hub.txt requirements.txt
	$(NEW_VENV) $(PEERS)/keras_hub
	$(PEERS)/keras_hub/bin/python -m pip install --quiet -r requirements.txt
	$(PEERS)/keras_hub/bin/python -m pip install --quiet -r $<
	touch $@

$(PEERS)/onnx/done: requirements.txt requirements/onnx.txt
	$(NEW_VENV) $(PEERS)/onnx
	$(PEERS)/onnx/bin/python -m pip install --quiet -r requirements.txt \
	    -r requirements/onnx.txt
	touch $@

$(PEERS)/keras_backends/done: benchmarks/peers/keras_backends.txt
	$(NEW_VENV) $(PEERS)/keras_backends
	$(PEERS)/keras_backends/bin/python -m pip install --quiet -r $<
	touch $@

$(PEERS)/tpu/done $(PEERS)/gpu/done: $(PEERS)/%/done: benchmarks/peers/%.txt
	$(NEW_VENV) $(PEERS)/$*
	$(PEERS)/$*/bin/python -m pip install --quiet -r $<
	touch $@

# make bench, make bench-peers
include benchmarks/rows.mk
