"""The compiler that Triton calls: passes over TTIR, whose text is what Girih reads."""

import hashlib
from dataclasses import dataclass

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget, Language

from girih import __version__, _girih
from girih.frontend.errors import kernel_error


@dataclass(frozen=True)
class GirihOptions:
    """The options that a launch may have. Numbers of warps and the like change nothing."""

    backend_name: str = "girih"
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    warp_size: int = 1
    maxnreg: int | None = None
    ir_override: str | None = None
    extern_libs: tuple = ()
    debug: bool = False
    sanitize_overflow: bool = False
    arch: str = "cpu"
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    cluster_dims: tuple = (1, 1, 1)
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv")
    deprecated_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    enable_fp_fusion: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    # Options of configurations for AMD's GPUs.
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1

    def __post_init__(self):
        assert self.num_warps > 0 and self.num_warps & (self.num_warps - 1) == 0, "num_warps must be a power of 2"

    def hash(self):
        return hashlib.sha256(repr(sorted(self.__dict__.items())).encode()).hexdigest()


class GirihBackend(BaseBackend):
    """Compiles kernels as far as TTIR, and checks that Girih takes it."""

    supports_native_tensor_specialization = True
    binary_ext = "girih"
    targets = ("girih",)

    @classmethod
    def supports_target(cls, target: GPUTarget):
        return target.backend in cls.targets

    def hash(self):
        return f"girih-{__version__}"

    def parse_options(self, opts):
        known = GirihOptions.__dataclass_fields__
        return GirihOptions(**{k: v for k, v in opts.items() if k in known and v is not None})

    def pack_metadata(self, metadata):
        return metadata

    def get_codegen_implementation(self, options):
        return {"min_dot_size": lambda *operands: (1, 1, 1), "convert_custom_types": _no_such_type}

    def get_module_map(self):
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context):
        pass

    def add_stages(self, stages, options, language=Language.TRITON):
        if language != Language.TRITON:
            raise NotImplementedError(
                "girih: Gluon's kernels say what each thread of a GPU does; write the kernel in triton.language"
            )
        stages["ttir"] = lambda src, metadata: make_ttir(src, options)
        stages["girih"] = lambda src, metadata: make_text(src, metadata)


def _no_such_type(*arguments, **options):
    raise NotImplementedError("girih: fp8e4b15 is a format of GPUs; the 8-bit floats here are float8e5 and float8e4nv")


# The passes before Girih reads a module, where this version of Triton has them.
_PASSES = (
    (passes.common, "add_inliner"),
    (passes.ttir, "add_rewrite_tensor_pointer"),
    (passes.ttir, "add_rewrite_tensor_descriptor_to_pointer"),
    (passes.common, "add_canonicalizer"),
    (passes.ttir, "add_combine"),
    (passes.ttir, "add_reorder_broadcast"),
    (passes.common, "add_cse"),
    (passes.common, "add_symbol_dce"),
    (passes.ttir, "add_loop_unroll"),
)


def make_ttir(mod, options):
    manager = ir.pass_manager(mod.context)
    manager.enable_debug()
    for where, name in _PASSES:
        if (add := getattr(where, name, None)) is not None:
            add(manager)
    try:
        manager.run(mod, "make_ttir")
    except TypeError:
        manager.run(mod)  # before 3.6
    return mod


def make_text(mod, metadata):
    text = str(mod)
    metadata["name"] = _entry(mod, text)
    metadata.update(shared=0, tmem_size=None, global_scratch_size=0, global_scratch_align=1)
    metadata.update(profile_scratch_size=0, profile_scratch_align=1, num_ctas=1)
    # A kernel that Girih cannot compile is refused here, not when it is launched.
    _girih.Kernel(text, metadata["name"], {}, kernel_error)
    return text.encode()


def _entry(mod, text):
    if hasattr(mod, "get_entry_func_name"):
        return mod.get_entry_func_name()
    return text.split("tt.func public @", 1)[1].split("(", 1)[0]
