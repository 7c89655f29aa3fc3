"""The cases that must exist: every operation of the compiler's table, on every element type it admits."""

import pathlib
import re

from . import formats as F
from .program import Program

TABLE = pathlib.Path(__file__).resolve().parents[2] / "crates/girih-tile-ir/src/cuda_tile/ops/table.rs"

MOVABLE = [d for d in F.NUMBERS if d != "f4E2M1FN"]
# Element types by operation; an operation without element types has the empty list.
ADMITS = {op: F.FLOATS for op in "absf addf atan2 ceil cmpf cos cosh divf exp exp2 floor fma log log2 maxf minf mulf negf pow "
          "fpowi remf rsqrt sin sinh sqrt subf tan tanh".split()}  # fmt: skip
ADMITS |= {op: F.INTS for op in "absi addi assume cmpi divi maxi mini mulhii muli negi remi shli shri subi andi ori xori iota".split()}
ADMITS |= {op: F.NUMBERS for op in "broadcast cat constant extract insert reshape permute bitcast load_view_tko store_view_tko "
           "make_tensor_view make_partition_view make_strided_view make_gather_scatter_view print_tko internal$optimization_barrier".split()}  # fmt: skip
ADMITS |= {op: MOVABLE for op in "select load_ptr_tko store_ptr_tko offset ptr_to_int int_to_ptr ptr_to_ptr reduce scan alloca "
           "get_global experimental$scatter_store".split()}  # fmt: skip
ADMITS |= {op: [] for op in "get_num_tile_blocks get_tile_block_id assert break continue if loop return yield make_token join_tokens "
           "gdc_launch_dependents_tko gdc_wait_tko memory_fence_alias_tko get_tensor_shape get_index_space_shape "
           "experimental$call experimental$extern_elementwise".split()}  # fmt: skip
ADMITS |= {
    "for": F.INTS[1:],
    "experimental$generate": F.INTS + F.FLOATS,
    "pack": [d for d in F.NUMBERS if F.BITS[d] != 8] + ["i4"],
    "unpack": [d for d in F.NUMBERS if F.BITS[d] != 8] + ["i4"],
    "exti": ["i4"] + F.INTS,
    "trunci": ["i4"] + F.INTS,
    "ftof": F.EVERY_FLOAT,
    "ftoi": F.EVERY_FLOAT + F.INTS,
    "itof": F.INTS + [d for d in F.EVERY_FLOAT if d != "f8E8M0FNU"],
    "mmaf": ["f8E4M3FN", "f8E5M2", "f16", "bf16", "tf32", "f32", "f64"],
    "mmaf_scaled": ["f8E4M3FN", "f8E5M2", "f4E2M1FN", "f8E8M0FNU", "f8E5M3FNU"],
    "mmai": ["i8", "i32"],
    "atomic_rmw_tko": ["i32", "i64"] + F.FLOATS,
    "atomic_red_view_tko": ["i32", "i64"] + F.FLOATS,
    "atomic_cas_tko": ["i32", "i64", "f32", "f64"],
    **{f"multimem_{what}_view_tko": ["i32", "i64"] + F.FLOATS for what in ("load_reduce", "reduce", "store")},
}


def missing():
    """One line for each gap."""
    text = TABLE.read_text()
    names = set(re.findall(r'^\s*op!\(\w+ "([^"]+)"', text, re.MULTILINE))
    gaps = [] if len(names) > 90 else [f"only {len(names)} operations found in {TABLE.name}"]
    for op in sorted(names):
        if op not in ADMITS:
            gaps.append(f"no case for `{op}`, which the table has")
            continue
        for d in ADMITS[op] or [""]:
            if (op, d) not in Program.covered:
                gaps.append(f"no case for `{op}`" + f" on {d}" * bool(d))
    return gaps + [f"`{op}` has cases, but the table does not have it" for op in sorted(set(ADMITS) - names)]
