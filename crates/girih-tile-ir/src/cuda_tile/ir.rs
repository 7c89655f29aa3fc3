//! The data structure of a tile program: a module of entries, each a tree of regions over one arena.

pub use super::loc::Loc;
use crate::base::{IdMap, Span};
pub use crate::num::op::{Predicate, Rounding, Signedness};
use crate::num::{DType, ScalarOp};
use girih_base::id_type;

id_type! {
    /// An SSA value of one function.
    ValueId
}
id_type! {
    /// An operation of one function.
    OpId
}
id_type! {
    /// A region of one function; every region has exactly one block.
    RegionId
}

/// The type of a tile's elements.
pub use crate::num::Ty as Elem;

/// The kind of memory that a pointer leads to, if its type gives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PtrAttr {
    None,
    Unicast,
    /// Memory that several devices share.
    Multicast,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TileType {
    /// Empty for a scalar.
    pub shape: Vec<u64>,
    pub elem: Elem,
    /// Set for pointers only.
    pub ptr_attr: Option<PtrAttr>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorViewType {
    pub elem: DType,
    /// `None` is dynamic (`?`).
    pub shape: Vec<Option<i64>>,
    pub strides: Vec<Option<i64>>,
    pub ptr_attr: Option<PtrAttr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Padding {
    Zero,
    NegZero,
    Nan,
    PosInf,
    NegInf,
}

/// The way in which a tile view walks its tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ViewKind {
    Partition,
    Strided { traversal_strides: Vec<i32> },
    GatherScatter { sparse_dim: u32 },
}

/// A partition, strided or gather/scatter view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TileViewType {
    pub kind: ViewKind,
    pub tile: Vec<i32>,
    pub tensor: TensorViewType,
    /// Identity if the text leaves it out; unused by gather/scatter views.
    pub dim_map: Vec<i32>,
    pub padding: Option<Padding>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    Tile(TileType),
    TensorView(Box<TensorViewType>),
    View(Box<TileViewType>),
    Token,
}

impl Type {
    pub fn scalar(d: DType) -> Type {
        Type::Tile(TileType::of(vec![], Elem::Num(d)))
    }
    pub fn tile(&self) -> Option<&TileType> {
        match self {
            Type::Tile(t) => Some(t),
            _ => None,
        }
    }
}

impl TileType {
    pub fn of(shape: Vec<u64>, elem: Elem) -> TileType {
        TileType { shape, elem, ptr_attr: None }
    }
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
    pub fn num(&self) -> Option<DType> {
        match self.elem {
            Elem::Num(d) => Some(d),
            Elem::Ptr(_) => None,
        }
    }
}

macro_rules! opcodes {
    ($($name:ident),* $(,)?) => {
        /// Every operation of the dialect; `ops::TABLE` has their properties.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Opcode { $($name),* }
        impl Opcode { pub const ALL: &'static [Opcode] = &[$(Opcode::$name),*]; }
    };
}

opcodes! {
    // core
    Broadcast, Cat, Constant, Extract, GetGlobal, GetNumTileBlocks, GetTileBlockId, Insert, Iota, MmaF, MmaFScaled, MmaI,
    Offset, Pack, Permute, Reduce, Reshape, Scan, Select, Unpack,
    // conversions
    Bitcast, ExtI, FToF, FToI, IntToPtr, IToF, PtrToInt, PtrToPtr, TruncI,
    // control flow
    Assert, Break, Continue, For, If, Loop, Return, Yield,
    // memory
    Alloca, GdcLaunchDependentsTko, GdcWaitTko, JoinTokens, LoadPtrTko, MakeToken, MemoryFenceAliasTko, StorePtrTko,
    // float
    AbsF, AddF, Atan2, Ceil, CmpF, Cos, CosH, DivF, Exp, Exp2, Floor, Fma, Log, Log2, MaxF, MinF, MulF, NegF, Pow, PowI,
    RemF, Rsqrt, Sin, SinH, Sqrt, SubF, Tan, TanH,
    // integer
    AbsI, AddI, CmpI, DivI, MaxI, MinI, MulHiI, MulI, NegI, RemI, ShlI, ShrI, SubI,
    // bitwise
    AndI, OrI, XorI,
    // atomics
    AtomicCasTko, AtomicRedViewTko, AtomicRmwTko,
    // views
    GetIndexSpaceShape, GetTensorShape, LoadViewTko, MakeGatherScatterView, MakePartitionView, MakeStridedView,
    MakeTensorView, MultimemLoadReduceViewTko, MultimemReduceViewTko, MultimemStoreViewTko, StoreViewTko,
    // miscellaneous
    Assume, PrintTko,
    // extensions of the older documents
    ExpCall, ExpExternElementwise, ExpGenerate, ExpScatterStore, OptimizationBarrier,
}

/// The key of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AttrKey {
    Rounding,
    FlushToZero,
    PropagateNan,
    Overflow,
    Signedness,
    SignednessLhs,
    SignednessRhs,
    Predicate,
    /// cmpf's `ordered`/`unordered`.
    Ordering,
    MemoryOrdering,
    MemoryScope,
    Mode,
    Reduction,
    Dim,
    Reverse,
    Identities,
    Permutation,
    Value,
    Message,
    Str,
    Name,
    NumElem,
    Alignment,
    Global,
    OptimizationHints,
    UnsignedCmp,
    Saturating,
    FastAcc,
    Predicated,
    Inbounds,
    Callee,
    KeepAxisInfo,
    LibName,
    LibPath,
    Symbol,
    Pure,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Overflow {
    None,
    NoSignedWrap,
    NoUnsignedWrap,
    NoWrap,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum MemoryOrdering {
    #[default]
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MemoryScope {
    TileBlock,
    Device,
    Sys,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AtomicMode {
    And,
    Or,
    Xor,
    Add,
    AddF,
    Max,
    Min,
    UMax,
    UMin,
    Xchg,
}

/// The operation by which accesses to multicast memory combine elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Reduction {
    /// The sum, of integers or floats.
    #[default]
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    UMin,
    UMax,
}

impl Reduction {
    /// The atomic operation that combines elements of a type in this way.
    pub fn mode(self, elem: DType) -> AtomicMode {
        match self {
            Reduction::Add if elem.is_float() => AtomicMode::AddF,
            Reduction::Add => AtomicMode::Add,
            Reduction::Min => AtomicMode::Min,
            Reduction::Max => AtomicMode::Max,
            Reduction::And => AtomicMode::And,
            Reduction::Or => AtomicMode::Or,
            Reduction::Xor => AtomicMode::Xor,
            Reduction::UMin => AtomicMode::UMin,
            Reduction::UMax => AtomicMode::UMax,
        }
    }
}

/// The elements of a constant, as bits in row-major order; one element stands for a splat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Elements {
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub bits: Vec<u64>,
}

impl Elements {
    pub fn is_splat(&self) -> bool {
        self.bits.len() == 1
    }
    /// Equal elements become a splat, as everywhere in MLIR.
    pub fn join_equal(&mut self) {
        if self.bits.iter().all(|b| Some(b) == self.bits.first()) {
            self.bits.truncate(1);
        }
    }
    /// The bits of element `i` in row-major order.
    pub fn get(&self, i: usize) -> u64 {
        if self.is_splat() { self.bits[0] } else { self.bits[i] }
    }
}

/// The predicate of `assume`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Assumption {
    /// The first element of every group of `every` along `along` is a multiple of `divisor`; the others ascend from it.
    DivBy {
        divisor: u64,
        every: Option<i64>,
        along: Option<i64>,
    },
    SameElements(Vec<i64>),
    Bounded {
        lb: Option<i64>,
        ub: Option<i64>,
    },
}

/// `<sm_100 = {num_cta_in_cga = 8}, default = {...}>`
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Hints(pub Vec<(String, Attr)>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Attr {
    Unit,
    Bool(bool),
    Int(i64),
    Str(String),
    Rounding(Rounding),
    Signedness(Signedness),
    Overflow(Overflow),
    Predicate(Predicate),
    /// `true` is `ordered`.
    Ordered(bool),
    MemoryOrdering(MemoryOrdering),
    MemoryScope(MemoryScope),
    Mode(AtomicMode),
    Reduction(Reduction),
    I32s(Vec<i32>),
    Bools(Vec<bool>),
    Elements(Elements),
    /// One per operand of reduce and scan: the element type and its bits.
    Identities(Vec<(DType, u64)>),
    Assumption(Assumption),
    Hints(Hints),
    Dict(Vec<(String, Attr)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    pub opcode: Opcode,
    pub operands: Vec<ValueId>,
    /// The number of operands in each group of `ops::TABLE`, in its order; the groups follow bytecode operand order,
    /// e.g. load_ptr_tko: source, mask, padding, token.
    pub groups: Vec<u32>,
    pub results: Vec<ValueId>,
    pub attrs: Vec<(AttrKey, Attr)>,
    pub regions: Vec<RegionId>,
    pub span: Span,
    pub loc: Loc,
}

impl Op {
    pub fn attr(&self, key: AttrKey) -> Option<&Attr> {
        self.attrs.iter().find(|(k, _)| *k == key).map(|(_, a)| a)
    }
    pub fn flag(&self, key: AttrKey) -> bool {
        matches!(self.attr(key), Some(Attr::Unit | Attr::Bool(true)))
    }
    pub fn int(&self, key: AttrKey) -> Option<i64> {
        match self.attr(key) {
            Some(Attr::Int(i)) => Some(*i),
            _ => None,
        }
    }
    /// The operation by which an access to multicast memory combines elements.
    pub fn reduction(&self) -> Reduction {
        match self.attr(AttrKey::Reduction) {
            Some(Attr::Reduction(r)) => *r,
            _ => Reduction::default(),
        }
    }
    /// The rounding mode, `default` when absent.
    pub fn rounding(&self, default: Rounding) -> Rounding {
        match self.attr(AttrKey::Rounding) {
            Some(Attr::Rounding(r)) => *r,
            _ => default,
        }
    }
    pub fn signedness(&self, key: AttrKey) -> Signedness {
        match self.attr(key) {
            Some(Attr::Signedness(s)) => *s,
            _ => Signedness::Signed,
        }
    }
    pub fn ordering(&self) -> MemoryOrdering {
        match self.attr(AttrKey::MemoryOrdering) {
            Some(Attr::MemoryOrdering(o)) => *o,
            _ => MemoryOrdering::Weak,
        }
    }
    /// The scalar operation for the library function that the operation names, if it is known.
    pub fn library_function(&self) -> Option<ScalarOp> {
        match self.attr(AttrKey::Symbol) {
            Some(Attr::Str(name)) => ScalarOp::of_library(name),
            _ => None,
        }
    }
    /// The operands of group `i`.
    pub fn group(&self, i: usize) -> &[ValueId] {
        let start: u32 = self.groups[..i.min(self.groups.len())].iter().sum();
        let len = self.groups.get(i).copied().unwrap_or(0);
        self.operands.get(start as usize..(start + len) as usize).unwrap_or(&[])
    }
    /// The operand of the single or optional group `i`.
    pub fn operand(&self, i: usize) -> Option<ValueId> {
        self.group(i).first().copied()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ValueDef {
    /// The `index`-th argument of a region.
    Arg { region: RegionId, index: u32 },
    /// The `index`-th result of an operation.
    Result { op: OpId, index: u32 },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub ty: Type,
    pub def: ValueDef,
    /// The name in the source, without `%`.
    pub name: Option<String>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Region {
    pub args: Vec<ValueId>,
    pub ops: Vec<OpId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FuncKind {
    Entry,
    /// `experimental$func` of the older documents: called, never launched.
    Function,
}

/// An entry (a kernel) or an older document's function, with the arena of everything inside it.
/// Region 0 is the body; its arguments are the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    pub kind: FuncKind,
    pub name: String,
    /// Empty for entries.
    pub results: Vec<Type>,
    pub hints: Hints,
    pub values: IdMap<ValueId, Value>,
    pub ops: IdMap<OpId, Op>,
    pub regions: IdMap<RegionId, Region>,
    pub span: Span,
    pub loc: Loc,
}

impl Func {
    pub const BODY: RegionId = RegionId(0);
    pub fn params(&self) -> &[ValueId] {
        &self.regions[Func::BODY].args
    }
    pub fn ty(&self, v: ValueId) -> &Type {
        &self.values[v].ty
    }
    /// The type of a value that is a tile, as the verifier has checked.
    pub fn tile_ty(&self, v: ValueId) -> Option<&TileType> {
        self.values[v].ty.tile()
    }
    /// The operation that defines a value.
    pub fn def_op(&self, v: ValueId) -> Option<OpId> {
        match self.values[v].def {
            ValueDef::Result { op, .. } => Some(op),
            ValueDef::Arg { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    pub name: String,
    pub private: bool,
    pub constant: bool,
    pub alignment: u64,
    pub value: Elements,
    pub span: Span,
    pub loc: Loc,
}

/// A tile program.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Module {
    /// `None` when the file has no module wrapper.
    pub name: Option<String>,
    pub producer: Option<String>,
    pub globals: Vec<Global>,
    pub funcs: Vec<Func>,
    /// The places where further modules of the same file begin; their symbols and those of the first module share one
    /// name space.
    pub later: Vec<Later>,
}

/// A further module of a file: it contains all items from these places up to the next module.
#[derive(Clone, Debug, PartialEq)]
pub struct Later {
    pub name: String,
    pub producer: Option<String>,
    pub globals: usize,
    pub funcs: usize,
    pub span: Span,
}

impl Module {
    pub fn entries(&self) -> impl Iterator<Item = &Func> {
        self.funcs.iter().filter(|f| f.kind == FuncKind::Entry)
    }
    pub fn entry(&self, name: &str) -> Option<&Func> {
        self.entries().find(|f| f.name == name)
    }
    pub fn function(&self, name: &str) -> Option<&Func> {
        self.funcs.iter().find(|f| f.name == name)
    }
    pub fn global(&self, name: &str) -> Option<&Global> {
        self.globals.iter().find(|g| g.name == name)
    }
}
