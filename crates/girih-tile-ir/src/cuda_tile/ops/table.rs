//! The rows of the operation table; [`super`] explains the columns and the format language.

use super::Effect::{self, *};
use crate::cuda_tile::ir::{
    AtomicMode, AttrKey, MemoryOrdering, MemoryScope, Opcode, Overflow, Predicate, Reduction, Rounding,
};
use crate::cuda_tile::ir::{Opcode as O, Signedness};
use crate::cuda_tile::words::Words;

/// The kind of value that an attribute holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrKind {
    /// A keyword that is present or not.
    Unit,
    Bool,
    /// A number, of type i64 or i32 in the generic form.
    I64,
    I32,
    Str,
    Symbol,
    I32s,
    Bools,
    Rounding,
    Signedness,
    Overflow,
    Predicate,
    Ordered,
    MemoryOrdering,
    MemoryScope,
    Mode,
    Reduction,
    Elements,
    Identities,
    Assumption,
    Hints,
}

impl AttrKind {
    pub fn describe(self) -> &'static str {
        match self {
            AttrKind::Unit => "a keyword",
            AttrKind::Bool => "true or false",
            AttrKind::I64 | AttrKind::I32 => "a number",
            AttrKind::Str => "a string",
            AttrKind::Symbol => "a symbol",
            AttrKind::I32s => "a list of numbers",
            AttrKind::Bools => "a list of truth values",
            AttrKind::Elements => "typed elements",
            AttrKind::Identities => "a list of typed numbers",
            AttrKind::Assumption => "div_by, same_elements or bounded",
            AttrKind::Hints => "a dictionary of hints per architecture",
            _ => "a word",
        }
    }
}

/// An attribute of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttrInfo {
    pub key: AttrKey,
    /// Its name in the generic form and in formats.
    pub name: &'static str,
    pub kind: AttrKind,
    /// The word for its absence, or the empty string.
    pub default: &'static str,
}

fn list<T: Words>() -> Option<Vec<&'static str>> {
    Some(T::WORDS.iter().map(|(w, _)| *w).collect())
}

impl AttrInfo {
    /// The words of an enumeration.
    pub fn words(&self) -> Option<Vec<&'static str>> {
        match self.kind {
            AttrKind::Rounding => list::<Rounding>(),
            AttrKind::Signedness => list::<Signedness>(),
            AttrKind::Overflow => list::<Overflow>(),
            AttrKind::Predicate => list::<Predicate>(),
            AttrKind::Ordered => list::<bool>(),
            AttrKind::MemoryOrdering => list::<MemoryOrdering>(),
            AttrKind::MemoryScope => list::<MemoryScope>(),
            AttrKind::Mode => list::<AtomicMode>(),
            AttrKind::Reduction => list::<Reduction>(),
            _ => None,
        }
    }
}

const fn attr(key: AttrKey, name: &'static str, kind: AttrKind) -> AttrInfo {
    AttrInfo { key, name, kind, default: "" }
}
const fn with_default(key: AttrKey, name: &'static str, kind: AttrKind, default: &'static str) -> AttrInfo {
    AttrInfo { key, name, kind, default }
}

const ROUND: AttrInfo = with_default(AttrKey::Rounding, "rounding_mode", AttrKind::Rounding, "nearest_even");
const ROUND_FULL: AttrInfo = with_default(AttrKey::Rounding, "rounding_mode", AttrKind::Rounding, "full");
const ROUND_INT: AttrInfo = with_default(AttrKey::Rounding, "rounding_mode", AttrKind::Rounding, "nearest_int_to_zero");
const ROUND_DIV: AttrInfo = with_default(AttrKey::Rounding, "rounding", AttrKind::Rounding, "zero");
const FTZ: AttrInfo = attr(AttrKey::FlushToZero, "flush_to_zero", AttrKind::Unit);
const NAN: AttrInfo = attr(AttrKey::PropagateNan, "propagate_nan", AttrKind::Unit);
const OVERFLOW: AttrInfo = with_default(AttrKey::Overflow, "overflow", AttrKind::Overflow, "none");
const SIGN: AttrInfo = attr(AttrKey::Signedness, "signedness", AttrKind::Signedness);
const SIGN_LHS: AttrInfo = attr(AttrKey::SignednessLhs, "signedness_lhs", AttrKind::Signedness);
const SIGN_RHS: AttrInfo = attr(AttrKey::SignednessRhs, "signedness_rhs", AttrKind::Signedness);
const PRED: AttrInfo = attr(AttrKey::Predicate, "comparison_predicate", AttrKind::Predicate);
const ORDERED: AttrInfo = attr(AttrKey::Ordering, "comparison_ordering", AttrKind::Ordered);
const ORDER: AttrInfo = attr(AttrKey::MemoryOrdering, "memory_ordering_semantics", AttrKind::MemoryOrdering);
const SCOPE: AttrInfo = attr(AttrKey::MemoryScope, "memory_scope", AttrKind::MemoryScope);
const MODE: AttrInfo = attr(AttrKey::Mode, "mode", AttrKind::Mode);
const REDUCTION: AttrInfo = with_default(AttrKey::Reduction, "reduction", AttrKind::Reduction, "add");
const DIM: AttrInfo = attr(AttrKey::Dim, "dim", AttrKind::I64);
const DIM32: AttrInfo = attr(AttrKey::Dim, "dim", AttrKind::I32);
const REVERSE: AttrInfo = attr(AttrKey::Reverse, "reverse", AttrKind::Bool);
const IDENTITIES: AttrInfo = attr(AttrKey::Identities, "identities", AttrKind::Identities);
const PERMUTATION: AttrInfo = attr(AttrKey::Permutation, "permutation", AttrKind::I32s);
const VALUE: AttrInfo = attr(AttrKey::Value, "value", AttrKind::Elements);
const MESSAGE: AttrInfo = attr(AttrKey::Message, "message", AttrKind::Str);
const STR: AttrInfo = attr(AttrKey::Str, "str", AttrKind::Str);
const NAME: AttrInfo = attr(AttrKey::Name, "name", AttrKind::Symbol);
const NUM_ELEM: AttrInfo = attr(AttrKey::NumElem, "num_elem", AttrKind::I64);
const ALIGNMENT: AttrInfo = attr(AttrKey::Alignment, "alignment", AttrKind::I64);
const GLOBAL: AttrInfo = attr(AttrKey::Global, "global", AttrKind::Unit);
const HINTS: AttrInfo = attr(AttrKey::OptimizationHints, "optimization_hints", AttrKind::Hints);
const UNSIGNED_CMP: AttrInfo = attr(AttrKey::UnsignedCmp, "unsignedCmp", AttrKind::Unit);
const SATURATING: AttrInfo = attr(AttrKey::Saturating, "saturating", AttrKind::Unit);
const FAST_ACC: AttrInfo = attr(AttrKey::FastAcc, "fast_acc", AttrKind::Unit);
const PREDICATE: AttrInfo = attr(AttrKey::Predicated, "predicate", AttrKind::Assumption);
const INBOUNDS: AttrInfo = attr(AttrKey::Inbounds, "inbounds", AttrKind::Bools);
const CALLEE: AttrInfo = attr(AttrKey::Callee, "callee", AttrKind::Symbol);
const KEEP_AXIS_INFO: AttrInfo = attr(AttrKey::KeepAxisInfo, "keep_axis_info", AttrKind::Unit);
const LIB_NAME: AttrInfo = attr(AttrKey::LibName, "libname", AttrKind::Str);
const LIB_PATH: AttrInfo = attr(AttrKey::LibPath, "libpath", AttrKind::Str);
const SYMBOL: AttrInfo = attr(AttrKey::Symbol, "symbol", AttrKind::Str);
const PURE_ATTR: AttrInfo = attr(AttrKey::Pure, "pure", AttrKind::Bool);

pub(super) struct Row {
    pub opcode: Opcode,
    pub name: &'static str,
    pub code: Option<u16>,
    pub since: (u8, u8),
    pub operands: &'static str,
    pub attrs: &'static [AttrInfo],
    pub results: &'static str,
    pub regions: (usize, usize),
    pub effect: Effect,
    pub format: &'static str,
    pub doc: &'static str,
}

/// Other names that the text may use; those of older documents get a warning.
pub const ALIASES: &[(&str, Opcode)] = &[
    ("print", O::PrintTko),
    ("fpowf", O::Pow),
    ("experimental$alloca", O::Alloca),
    ("experimental$mmaf_scaled", O::MmaFScaled),
];

const UNARY: &str = "%source : {source|result}";
const CONVERT: &str = "%source : {source} -> {result}";
const BINARY: &str = "%lhs , %rhs : {lhs|rhs|result}";
const ROUNDED: &str = "%lhs , %rhs $rounding_mode? $flush_to_zero? : {lhs|rhs|result}";
const MINMAX: &str = "%lhs , %rhs $flush_to_zero? $propagate_nan? : {lhs|rhs|result}";
const WRAPPING: &str = "%lhs , %rhs $overflow? : {lhs|rhs|result}";
const SIGNED: &str = "%lhs , %rhs $signedness : {lhs|rhs|result}";

/// A pure operation without regions, since 13.1, unless the row gives other fields.
macro_rules! op {
    ($opcode:ident $name:literal $code:literal ($operands:literal) [$($attr:ident),*] ($results:literal) $format:expr, $doc:literal
     $(, $field:ident: $value:expr)*) => {
        Row { $($field: $value,)* ..Row {
            opcode: O::$opcode, name: $name, code: Some($code), since: (13, 1), operands: $operands, attrs: &[$($attr),*],
            results: $results, regions: (0, 0), effect: Pure, format: $format, doc: $doc,
        } }
    };
}

/// The operations, in the groups of the reference.
pub(super) static GROUPS: &[(&str, &[Row])] = &[
    (
        "Core",
        &[
            op!(Broadcast "broadcast" 0x0B ("source") [] ("result") CONVERT, "Repeats the dimensions of size 1 until the result's shape is reached."),
            op!(Cat "cat" 0x0C ("lhs rhs") [DIM] ("result") "%lhs , %rhs dim = $dim : {lhs} , {rhs} -> {result}", "Joins two tiles along a dimension."),
            op!(Constant "constant" 0x10 ("") [VALUE] ("result") "$value : {result}", "A tile of given elements; a single number fills the whole tile."),
            op!(Extract "extract" 0x26 ("source indices*") [] ("result") "%source [ %indices* ] : {source} -> {result}", "One subtile of a tile that is cut into subtiles of the result's shape; the indices count subtiles, not elements."),
            op!(GetGlobal "get_global" 0x2C ("") [NAME] ("result") "$name : {result}", "The address of a module's global."),
            op!(GetNumTileBlocks "get_num_tile_blocks" 0x2E ("") [] ("gridSize_x gridSize_y gridSize_z") ": {results}", "The extents of the grid."),
            op!(GetTileBlockId "get_tile_block_id" 0x30 ("") [] ("blockId_x blockId_y blockId_z") ": {results}", "The coordinates of the running block in the grid."),
            op!(Insert "insert" 0x76 ("source destination indices*") [] ("result") "%source , %destination [ %indices* ] : {source} , {destination|result}", "The destination with one of its subtiles, numbered as for extract, replaced by the source.", since: (13, 4)),
            op!(Iota "iota" 0x3A ("") [] ("result") ": {result}", "The numbers 0, 1, 2 and so on."),
            op!(MmaF "mmaf" 0x49 ("lhs rhs acc") [FAST_ACC] ("result") "%lhs , %rhs , %acc $fast_acc? : {lhs} , {rhs} , {acc|result}", "Floating-point matrix product plus accumulator, with an optional leading batch dimension. `fast_acc` permits a less precise accumulation of 8-bit inputs."),
            op!(MmaFScaled "mmaf_scaled" 0x72 ("lhs rhs acc lhs_scale rhs_scale") [] ("result") "%lhs , %rhs , %acc , %lhs_scale , %rhs_scale : {lhs} , {rhs} , {acc|result} , {lhs_scale} , {rhs_scale}", "Matrix product whose operands carry one scale factor per block along the contracted dimension.", since: (13, 3)),
            op!(MmaI "mmai" 0x4A ("lhs rhs acc") [SIGN_LHS, SIGN_RHS] ("result") "%lhs , %rhs , %acc $signedness_lhs $signedness_rhs : {lhs} , {rhs} , {acc|result}", "Integer matrix product plus accumulator; each operand is read as signed or unsigned."),
            op!(Offset "offset" 0x51 ("ptr offset") [] ("result") "%ptr , %offset : {ptr} , {offset} -> {result}", "Moves each pointer by a number of elements; offsets are signed."),
            op!(Pack "pack" 0x6F ("source") [] ("result") CONVERT, "The bytes of a one-dimensional tile.", since: (13, 3)),
            op!(Permute "permute" 0x53 ("source") [PERMUTATION] ("result") "%source $permutation : {source} -> {result}", "Reorders dimensions: dimension i of the result is dimension `permutation[i]` of the source."),
            op!(Reduce "reduce" 0x58 ("operands*") [DIM32, IDENTITIES] ("results*") "", "Folds the operands along one dimension with the body, whose arguments are an element and the accumulator of each operand in turn.", regions: (1, 1), effect: Structured),
            op!(Reshape "reshape" 0x5B ("source") [] ("result") CONVERT, "The same elements in row-major order under another shape."),
            op!(Scan "scan" 0x5E ("operands*") [DIM32, REVERSE, IDENTITIES] ("results*") "", "Inclusive running fold along one dimension, optionally from its end.", regions: (1, 1), effect: Structured),
            op!(Select "select" 0x5F ("cond val_if_true val_if_false") [] ("result") "%cond , %val_if_true , %val_if_false : {cond} , {val_if_true|val_if_false|result}", "Chooses element by element."),
            op!(Unpack "unpack" 0x70 ("source") [] ("result") CONVERT, "Reads a one-dimensional tile of bytes as elements of another type.", since: (13, 3)),
        ],
    ),
    (
        "Conversions",
        &[
            op!(Bitcast "bitcast" 0x09 ("source") [] ("result") CONVERT, "The same bits as another type of the same width."),
            op!(ExtI "exti" 0x25 ("from") [SIGN] ("to") "%from $signedness : {from} -> {to}", "Widens integers by their sign or by zeros."),
            op!(FToF "ftof" 0x2A ("from") [ROUND] ("to") "%from $rounding_mode? : {from} -> {to}", "Converts between floating-point types."),
            op!(FToI "ftoi" 0x2B ("from") [SIGN, ROUND_INT, SATURATING] ("to") "%from $signedness $rounding_mode? $saturating? : {from} -> {to}", "Drops the fraction. Numbers out of range, infinities and NaN are undefined unless `saturating`. To i1: whether the number is not zero; a NaN is not."),
            op!(IntToPtr "int_to_ptr" 0x33 ("source") [] ("result") CONVERT, "Addresses from 64-bit integers."),
            op!(IToF "itof" 0x3B ("from") [SIGN, ROUND] ("to") "%from $signedness $rounding_mode? : {from} -> {to}", "Integers as floating-point numbers."),
            op!(PtrToInt "ptr_to_int" 0x56 ("source") [] ("result") CONVERT, "Addresses as 64-bit integers."),
            op!(PtrToPtr "ptr_to_ptr" 0x57 ("source") [] ("result") CONVERT, "The same addresses with another pointee."),
            op!(TruncI "trunci" 0x6B ("from") [OVERFLOW] ("to") "%from $overflow? : {from} -> {to}", "Keeps the low bits."),
        ],
    ),
    (
        "Control flow",
        &[
            op!(Assert "assert" 0x05 ("condition") [MESSAGE] ("") "%condition , $message : {condition}", "Traps with the message unless every element is true.", effect: Observable),
            op!(Break "break" 0x0A ("operands*") [] ("") "", "Leaves the nearest `loop` with its results.", effect: Terminator),
            op!(Continue "continue" 0x11 ("operands*") [] ("") "", "Goes on with the next iteration of the nearest loop.", effect: Terminator),
            op!(For "for" 0x29 ("lower upper step inits*") [UNSIGNED_CMP] ("results*") "", "Counts from the lower bound to below the upper one, carrying values from one iteration to the next.", regions: (1, 1), effect: Structured),
            op!(If "if" 0x32 ("condition") [] ("results*") "", "Runs one of two regions.", regions: (1, 2), effect: Structured),
            op!(Loop "loop" 0x41 ("inits*") [] ("results*") "", "Repeats its region until `break`.", regions: (1, 1), effect: Structured),
            op!(Return "return" 0x5C ("operands*") [] ("") "", "Ends the function.", effect: Terminator),
            op!(Yield "yield" 0x6D ("operands*") [] ("") "", "Ends a region with its results.", effect: Terminator),
        ],
    ),
    (
        "Memory",
        &[
            op!(Alloca "alloca" 0x71 ("") [NUM_ELEM, ALIGNMENT, GLOBAL] ("result") "num_elem = $num_elem , alignment = $alignment $global? : {result}", "Reserves memory for as long as the enclosing block runs.", since: (13, 3), effect: Alloc),
            op!(GdcLaunchDependentsTko "gdc_launch_dependents_tko" 0x77 ("token?") [] ("result_token") "token? ->token?", "Lets the kernels that depend on this one be launched.", since: (13, 4), effect: Observable),
            op!(GdcWaitTko "gdc_wait_tko" 0x78 ("token?") [] ("result_token") "token? ->token?", "Waits for the kernels this one depends on.", since: (13, 4), effect: Observable),
            op!(JoinTokens "join_tokens" 0x3C ("tokens*") [] ("result") "%tokens* : {result}", "A token that follows all the given ones."),
            op!(LoadPtrTko "load_ptr_tko" 0x3D ("source mask? padding? token?") [ORDER, SCOPE, HINTS] ("result result_token") "$memory_ordering_semantics $memory_scope? %source %mask? %padding? token? $optimization_hints? : {source} {mask?} {padding?} -> {result} , {result_token}", "Reads through each pointer; where the mask is false the padding is taken instead.", effect: Read),
            op!(MakeToken "make_token" 0x44 ("") [] ("result") ": {result}", "A token that nothing precedes."),
            op!(MemoryFenceAliasTko "memory_fence_alias_tko" 0x7A ("token") [] ("result_token") "%token :token?", "Orders accesses to one memory through different addresses.", since: (13, 4), effect: Observable),
            op!(StorePtrTko "store_ptr_tko" 0x65 ("destination value mask? token?") [ORDER, SCOPE, HINTS] ("result_token") "$memory_ordering_semantics $memory_scope? %destination , %value %mask? token? $optimization_hints? : {destination} , {value} {mask?} -> {result_token}", "Writes through each pointer whose mask is true.", effect: Write),
        ],
    ),
    (
        "Floating point",
        &[
            op!(AbsF "absf" 0x00 ("source") [] ("result") UNARY, "Magnitude."),
            op!(AddF "addf" 0x02 ("lhs rhs") [ROUND, FTZ] ("result") ROUNDED, "Sum."),
            op!(Atan2 "atan2" 0x6E ("x y") [] ("result") "%x , %y : {x|y|result}", "The angle of x / y, in the quadrant their signs give.", since: (13, 2)),
            op!(Ceil "ceil" 0x0D ("source") [] ("result") UNARY, "The nearest integer not below."),
            op!(CmpF "cmpf" 0x0E ("lhs rhs") [PRED, ORDERED] ("result") "$comparison_predicate $comparison_ordering %lhs , %rhs : {lhs|rhs} -> {result}", "Compares; with a NaN an ordered comparison is false, an unordered one true."),
            op!(Cos "cos" 0x12 ("source") [] ("result") UNARY, "Cosine."),
            op!(CosH "cosh" 0x13 ("source") [] ("result") UNARY, "Hyperbolic cosine."),
            op!(DivF "divf" 0x14 ("lhs rhs") [ROUND, FTZ] ("result") ROUNDED, "Quotient."),
            op!(Exp "exp" 0x17 ("source") [ROUND_FULL] ("result") "%source $rounding_mode? : {source|result}", "e to the power of the source."),
            op!(Exp2 "exp2" 0x18 ("source") [FTZ] ("result") "%source $flush_to_zero? : {source|result}", "2 to the power of the source."),
            op!(Floor "floor" 0x27 ("source") [] ("result") UNARY, "The nearest integer not above."),
            op!(Fma "fma" 0x28 ("lhs rhs acc") [ROUND, FTZ] ("result") "%lhs , %rhs , %acc $rounding_mode? $flush_to_zero? : {lhs|rhs|acc|result}", "Product plus addend, rounded once."),
            op!(Log "log" 0x3F ("source") [] ("result") UNARY, "Natural logarithm."),
            op!(Log2 "log2" 0x40 ("source") [] ("result") UNARY, "Logarithm to base 2."),
            op!(MaxF "maxf" 0x45 ("lhs rhs") [NAN, FTZ] ("result") MINMAX, "The greater; a NaN loses against a number unless `propagate_nan`."),
            op!(MinF "minf" 0x47 ("lhs rhs") [NAN, FTZ] ("result") MINMAX, "The lesser; a NaN loses against a number unless `propagate_nan`."),
            op!(MulF "mulf" 0x4C ("lhs rhs") [ROUND, FTZ] ("result") ROUNDED, "Product."),
            op!(NegF "negf" 0x4F ("source") [] ("result") UNARY, "The other sign."),
            op!(Pow "pow" 0x54 ("source exponent") [] ("result") "%source , %exponent : {source|exponent|result}", "The source to the power of the exponent."),
            op!(PowI "fpowi" 0x79 ("source exponent") [] ("result") "%source , %exponent : {source|result} , {exponent}", "The source to an integer power.", since: (13, 4)),
            op!(RemF "remf" 0x59 ("lhs rhs") [] ("result") BINARY, "Remainder of the truncated quotient."),
            op!(Rsqrt "rsqrt" 0x5D ("source") [FTZ] ("result") "%source $flush_to_zero? : {source|result}", "One over the square root."),
            op!(Sin "sin" 0x62 ("source") [] ("result") UNARY, "Sine."),
            op!(SinH "sinh" 0x63 ("source") [] ("result") UNARY, "Hyperbolic sine."),
            op!(Sqrt "sqrt" 0x64 ("source") [ROUND, FTZ] ("result") "%source $rounding_mode? $flush_to_zero? : {source|result}", "Square root."),
            op!(SubF "subf" 0x67 ("lhs rhs") [ROUND, FTZ] ("result") ROUNDED, "Difference."),
            op!(Tan "tan" 0x69 ("source") [] ("result") UNARY, "Tangent."),
            op!(TanH "tanh" 0x6A ("source") [ROUND_FULL] ("result") "%source $rounding_mode? : {source|result}", "Hyperbolic tangent."),
        ],
    ),
    (
        "Integers",
        &[
            op!(AbsI "absi" 0x01 ("source") [] ("result") UNARY, "Magnitude, signed."),
            op!(AddI "addi" 0x03 ("lhs rhs") [OVERFLOW] ("result") WRAPPING, "Sum, wrapping; `overflow` promises that it does not."),
            op!(CmpI "cmpi" 0x0F ("lhs rhs") [PRED, SIGN] ("result") "$comparison_predicate %lhs , %rhs , $signedness : {lhs|rhs} -> {result}", "Compares integers read as signed or unsigned."),
            op!(DivI "divi" 0x15 ("lhs rhs") [SIGN, ROUND_DIV] ("result") "%lhs , %rhs $signedness $rounding? : {lhs|rhs|result}", "Quotient, rounded to zero or towards an infinity. Dividing by zero is undefined."),
            op!(MaxI "maxi" 0x46 ("lhs rhs") [SIGN] ("result") SIGNED, "The greater."),
            op!(MinI "mini" 0x48 ("lhs rhs") [SIGN] ("result") SIGNED, "The lesser."),
            op!(MulHiI "mulhii" 0x4D ("x y") [] ("result") "%x , %y : {x|y|result}", "The high half of the unsigned product."),
            op!(MulI "muli" 0x4E ("lhs rhs") [OVERFLOW] ("result") WRAPPING, "Product, wrapping."),
            op!(NegI "negi" 0x50 ("source") [OVERFLOW] ("result") "%source $overflow? : {source|result}", "The other sign, wrapping."),
            op!(RemI "remi" 0x5A ("lhs rhs") [SIGN] ("result") SIGNED, "Remainder of the truncated quotient."),
            op!(ShlI "shli" 0x60 ("lhs rhs") [OVERFLOW] ("result") WRAPPING, "Shifts left."),
            op!(ShrI "shri" 0x61 ("lhs rhs") [SIGN] ("result") SIGNED, "Shifts right, filling with the sign or with zeros."),
            op!(SubI "subi" 0x68 ("lhs rhs") [OVERFLOW] ("result") WRAPPING, "Difference, wrapping."),
        ],
    ),
    (
        "Bits",
        &[
            op!(AndI "andi" 0x04 ("lhs rhs") [] ("result") BINARY, "Bitwise and."),
            op!(OrI "ori" 0x52 ("lhs rhs") [] ("result") BINARY, "Bitwise or."),
            op!(XorI "xori" 0x6C ("lhs rhs") [] ("result") BINARY, "Bitwise exclusive or."),
        ],
    ),
    (
        "Atomics",
        &[
            op!(AtomicCasTko "atomic_cas_tko" 0x07 ("pointers cmp val mask? token?") [ORDER, SCOPE] ("result result_token") "$memory_ordering_semantics $memory_scope %pointers , %cmp , %val %mask? token? : {pointers} , {cmp|val} {mask?} -> {result} , {result_token}", "Replaces each element that equals `cmp` bit for bit; yields what was there.", effect: Atomic),
            op!(AtomicRedViewTko "atomic_red_view_tko" 0x75 ("view index* value token?") [ORDER, SCOPE, MODE, INBOUNDS] ("result_token") "$memory_ordering_semantics $memory_scope %view [ %index* ] , $mode , %value token? $inbounds? : {value} , {view} {index~} -> {result_token}", "Combines a tile into a view's elements, each atomically.", since: (13, 3), effect: Atomic),
            op!(AtomicRmwTko "atomic_rmw_tko" 0x08 ("pointers arg mask? token?") [ORDER, SCOPE, MODE] ("result result_token") "$memory_ordering_semantics $memory_scope %pointers , $mode , %arg %mask? token? : {pointers} , {arg} {mask?} -> {result} , {result_token}", "Combines each element with the argument; yields what was there.", effect: Atomic),
        ],
    ),
    (
        "Views",
        &[
            op!(GetIndexSpaceShape "get_index_space_shape" 0x2D ("src") [] ("result*") "%src : {src} -> {results}", "How many tiles a view has along each of its dimensions."),
            op!(GetTensorShape "get_tensor_shape" 0x2F ("src") [] ("result*") "%src : {src} -> {results}", "The extents of a tensor view."),
            op!(LoadViewTko "load_view_tko" 0x3E ("view index* token?") [ORDER, SCOPE, HINTS, INBOUNDS] ("tile result_token") "$memory_ordering_semantics $memory_scope? %view [ %index* ] token? $optimization_hints? $inbounds? : {view} {index~} -> {tile} , {result_token}", "Reads one tile of a view; elements outside the tensor take the view's padding.", effect: Read),
            op!(MakeGatherScatterView "make_gather_scatter_view" 0x73 ("tensor_view") [] ("result") "%tensor_view : {result}", "A view whose tiles pick their own rows along one dimension.", since: (13, 3)),
            op!(MakePartitionView "make_partition_view" 0x42 ("tensor_view") [] ("result") "%tensor_view : {result}", "A view that cuts a tensor into tiles side by side."),
            op!(MakeStridedView "make_strided_view" 0x74 ("tensor_view") [] ("result") "%tensor_view : {result}", "A view whose tiles start at multiples of given strides.", since: (13, 3)),
            op!(MakeTensorView "make_tensor_view" 0x43 ("base dynamicShape* dynamicStrides*") [] ("result") "", "Memory from a base pointer on, seen as a tensor of given extents and strides (in elements)."),
            op!(MultimemLoadReduceViewTko "multimem_load_reduce_view_tko" 0x7B ("view index* token?") [ORDER, SCOPE, REDUCTION, INBOUNDS] ("reduced_values result_token") "$memory_ordering_semantics $memory_scope? %view [ %index* ] token? $inbounds? $reduction? : {view} {index~} {token?} -> {reduced_values} , {result_token}", "Reads one tile of a view of multicast memory, its elements combined over the copies that the devices hold; of one device's copy this is a plain load. A reduction other than `add` is written `attributes {reduction = #cuda_tile.multimem_reduction_kind<max>}`.", since: (13, 5), effect: Read),
            op!(MultimemReduceViewTko "multimem_reduce_view_tko" 0x7C ("view tile index* token?") [ORDER, SCOPE, REDUCTION, INBOUNDS] ("result_token") "$memory_ordering_semantics $memory_scope %view , %tile [ %index* ] token? $inbounds? $reduction? : {view} , {tile} {index~} {token?} -> {result_token}", "Combines a tile into the elements of a view of multicast memory, each atomically, in every copy; the reduction is written as for `multimem_load_reduce_view_tko`.", since: (13, 5), effect: Atomic),
            op!(MultimemStoreViewTko "multimem_store_view_tko" 0x7D ("view tile index* token?") [ORDER, SCOPE, INBOUNDS] ("result_token") "$memory_ordering_semantics $memory_scope? %view , %tile [ %index* ] token? $inbounds? : {view} , {tile} {index~} {token?} -> {result_token}", "Writes one tile of a view of multicast memory, in every copy.", since: (13, 5), effect: Write),
            op!(StoreViewTko "store_view_tko" 0x66 ("tile view index* token?") [ORDER, SCOPE, HINTS, INBOUNDS] ("result_token") "$memory_ordering_semantics $memory_scope? %tile , %view [ %index* ] token? $optimization_hints? $inbounds? : {tile} , {view} {index~} -> {result_token}", "Writes one tile of a view; elements outside the tensor are dropped.", effect: Write),
        ],
    ),
    (
        "Miscellaneous",
        &[
            op!(Assume "assume" 0x06 ("value") [PREDICATE] ("result") "$predicate , %value : {value|result}", "The value, with a fact that the program promises about it."),
            op!(PrintTko "print_tko" 0x55 ("args* token?") [STR] ("result_token") "", "Prints a format string and its tiles.", effect: Observable),
        ],
    ),
    (
        "Extensions of older documents",
        &[
            op!(ExpCall "experimental$call" 0 ("args*") [CALLEE] ("results*") "", "Calls a function of the module.", code: None, effect: Observable),
            op!(ExpExternElementwise "experimental$extern_elementwise" 0 ("args*") [LIB_NAME, LIB_PATH, PURE_ATTR, SYMBOL] ("result") "", "Applies a function of a named library to each element.", code: None, effect: Observable),
            op!(ExpGenerate "experimental$generate" 0 ("") [] ("result") "", "Computes each element from its index.", code: None, regions: (1, 1), effect: Structured),
            op!(ExpScatterStore "experimental$scatter_store" 0 ("src dst index offsets* token?") [DIM] ("result_token") "", "Writes the rows of a tile to the rows of a tensor view that an index tile names.", code: None, effect: Write),
            op!(OptimizationBarrier "internal$optimization_barrier" 0 ("source") [KEEP_AXIS_INFO] ("result") "", "The source unchanged; the known facts about it are dropped.", code: None),
        ],
    ),
];
