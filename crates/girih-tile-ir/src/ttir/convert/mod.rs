//! [`ast`](super::ast) to Tile IR: one function at a time, operation by operation, in order.
//!
//! Invariants: a value of TTIR becomes one value of the same shape and elements. Every access follows, by its token, the
//! accesses before it: a read all writes, a write or an atomic all reads and writes; what a region does stands between.

pub mod arith;
mod control;
pub mod debug;
pub mod dot;
pub mod fold;
pub mod library;
pub mod memory;
pub mod shape;

use crate::base::id::Id;
use crate::base::{Code, Diagnostic, IdMap, Span};
use crate::cuda_tile::ir::{
    Assumption, Attr, AttrKey, Elem, Elements, Func, FuncKind, Hints, Module, Op as TileOp, OpId, Opcode, Region,
    RegionId, TileType, Type, Value, ValueDef, ValueId,
};
use crate::cuda_tile::loc::{Loc, LocKind};
use crate::cuda_tile::ops;
use crate::num::DType;
use crate::num::op::Signedness;
use crate::ttir::ast::{self, Op, Ty, V};

pub type Res<T> = Result<T, Box<Diagnostic>>;

/// Operations that one function may become, however its blocks are joined.
const MAX_OPS: usize = 1 << 20;

/// Converts a module: public functions that nothing calls become entries.
pub fn convert(module: &ast::Module) -> Res<Module> {
    let mut out = Module { name: Some("kernels".into()), producer: Some("triton".into()), ..Module::default() };
    let called = |name: &str| module.funcs.iter().any(|f| calls(&f.body, name));
    for func in &module.funcs {
        let kind = if func.public && func.results.is_empty() && !called(&func.name) {
            FuncKind::Entry
        } else {
            FuncKind::Function
        };
        out.funcs.push(Conv::new(module, func, kind)?.function(func)?);
    }
    Ok(out)
}

fn calls(region: &ast::Region, name: &str) -> bool {
    let ops = region.blocks.iter().flat_map(|b| &b.ops);
    ops.into_iter().any(|op| op.text("callee") == Some(name) || op.regions.iter().any(|r| calls(r, name)))
}

/// The tokens of the accesses so far.
#[derive(Clone, Default)]
struct Order {
    /// The token of the last write; `None` before the first access.
    written: Option<ValueId>,
    /// The tokens of the reads since then.
    read: Vec<ValueId>,
}

/// A function that is being converted.
pub struct Conv<'m> {
    module: &'m ast::Module,
    func: Func,
    region: RegionId,
    values: Vec<Option<ValueId>>,
    order: Order,
    /// The shape that scalars get in a function that is applied to each element of a tile.
    shape_of_scalars: Option<Vec<u64>>,
    span: Span,
    loc: Loc,
}

impl<'m> Conv<'m> {
    fn new(module: &'m ast::Module, func: &ast::Func, kind: FuncKind) -> Res<Conv<'m>> {
        let results =
            func.results.iter().map(|ty| tile(ty, func.span, &func.loc).map(Type::Tile)).collect::<Res<_>>()?;
        let out = Func {
            kind,
            name: func.name.clone(),
            results,
            hints: Hints::default(),
            values: IdMap::new(),
            ops: IdMap::new(),
            regions: IdMap::new(),
            span: func.span,
            loc: func.loc.clone(),
        };
        Ok(Conv {
            module,
            func: out,
            region: Func::BODY,
            values: vec![None; module.values.len()],
            order: Order::default(),
            shape_of_scalars: None,
            span: func.span,
            loc: func.loc.clone(),
        })
    }

    fn function(mut self, func: &ast::Func) -> Res<Func> {
        self.func.regions.push(Region::default());
        for param in &func.params {
            let value = &self.module.values[param.value];
            let ty = tile(&value.ty, value.span, &param.loc)?;
            let name = match param.loc.kind() {
                Some(LocKind::Named { name, .. }) => name.to_string(),
                _ => value.name.clone(),
            };
            let v = self.argument(Func::BODY, Type::Tile(ty), Some(name), value.span);
            self.values[param.value.index()] = Some(v);
        }
        for param in &func.params {
            self.param_facts(param)?;
        }
        self.body(&func.body)?;
        Ok(self.func)
    }

    /// Assumes the facts about an argument that Triton specialised the kernel for.
    fn param_facts(&mut self, param: &ast::Param) -> Res<()> {
        let divisor = param.attrs.iter().find_map(|(name, a)| match a {
            ast::Attr::Int(n) if name == "tt.divisibility" => u64::try_from(*n).ok(),
            _ => None,
        });
        let Some(divisor) = divisor.filter(|d| d.is_power_of_two() && *d > 1 && *d <= 1 << 30) else { return Ok(()) };
        let Some(v) = self.values[param.value.index()] else { return Ok(()) };
        let ty = self.tile_ty(v).clone();
        let integral = match ty.elem {
            Elem::Ptr(_) => true,
            Elem::Num(d) => d.is_int() && d != DType::I1,
        };
        if integral {
            self.loc = param.loc.clone();
            let fact = Attr::Assumption(Assumption::DivBy { divisor, every: None, along: None });
            let known = self.tile(Opcode::Assume, &[&[v]], vec![(AttrKey::Predicated, fact)], ty);
            self.values[param.value.index()] = Some(known);
        }
        Ok(())
    }

    fn argument(&mut self, region: RegionId, ty: Type, name: Option<String>, span: Span) -> ValueId {
        let index = self.func.regions[region].args.len() as u32;
        let name = name.filter(|n| !n.is_empty() && !n.starts_with(|c: char| c.is_ascii_digit()));
        let v = self.func.values.push(Value { ty, def: ValueDef::Arg { region, index }, name, span });
        self.func.regions[region].args.push(v);
        v
    }

    // Operations.

    /// Converts one operation.
    fn op(&mut self, op: &Op) -> Res<()> {
        self.at(op);
        if self.func.ops.len() > MAX_OPS {
            return self.refuse(op, "the kernel becomes too large");
        }
        (op.row.convert)(self, op)
    }

    /// Names this operation as the source of everything that is emitted from here on.
    fn at(&mut self, op: &Op) {
        self.span = op.span;
        self.loc = op.loc.clone();
    }

    /// An operation that ends a block stands within one.
    pub fn misplaced(&mut self, op: &Op) -> Res<()> {
        self.error(op, Code::BadTerminator, format!("`{}` ends a block, and stands in the middle of one", op.row.name))
    }

    #[cold]
    pub fn error<T>(&self, op: &Op, code: Code, message: impl Into<String>) -> Res<T> {
        Err(Box::new(Diagnostic::error(code, message).at(op.span).from(op.loc.frames().into())))
    }
    /// The operation is understood, and cannot be expressed.
    #[cold]
    pub fn refuse<T>(&self, op: &Op, message: impl Into<String>) -> Res<T> {
        self.error(op, Code::UnknownOp, message)
    }
    #[cold]
    pub fn refuse_with<T>(&self, op: &Op, message: impl Into<String>, help: impl Into<String>) -> Res<T> {
        let d = Diagnostic::error(Code::UnknownOp, message).at(op.span).from(op.loc.frames().into());
        Err(Box::new(d.help(help)))
    }

    /// The value of an operand that must be there.
    pub fn arg(&self, op: &Op, i: usize) -> Res<ValueId> {
        match op.operands.get(i) {
            Some(&v) => self.value(op, v),
            None => self.error(op, Code::OperandCount, format!("`{}` has {} operands", op.row.name, op.operands.len())),
        }
    }
    pub fn args(&self, op: &Op) -> Res<Vec<ValueId>> {
        op.operands.iter().map(|&v| self.value(op, v)).collect()
    }
    pub fn value(&self, op: &Op, v: V) -> Res<ValueId> {
        match self.values.get(v.index()).copied().flatten() {
            Some(v) => Ok(v),
            None => self.error(op, Code::UndefinedValue, "a value is used where it is not defined"),
        }
    }
    /// Refuses another number of operands.
    pub fn count(&self, op: &Op, fits: std::ops::RangeInclusive<usize>) -> Res<()> {
        if fits.contains(&op.operands.len()) {
            return Ok(());
        }
        self.error(op, Code::OperandCount, format!("`{}` has {} operands", op.row.name, op.operands.len()))
    }
    /// The type of a result.
    pub fn gives(&self, op: &Op, i: usize) -> Res<TileType> {
        match op.results.get(i).and_then(|&v| self.module.values.get(v)) {
            Some(value) => {
                let ty = tile(&value.ty, op.span, &op.loc)?;
                Ok(match &self.shape_of_scalars {
                    Some(shape) if ty.shape.is_empty() => TileType { shape: shape.clone(), ..ty },
                    _ => ty,
                })
            }
            None => self.error(op, Code::ResultCount, format!("`{}` has {} results", op.row.name, op.results.len())),
        }
    }
    pub fn tile_ty(&self, v: ValueId) -> &TileType {
        const NONE: &TileType = &TileType { shape: vec![], elem: Elem::Num(DType::I1), ptr_attr: None };
        self.func.tile_ty(v).unwrap_or(NONE)
    }
    /// The numbers that a tile holds.
    pub fn dtype(&self, op: &Op, v: ValueId) -> Res<DType> {
        match self.tile_ty(v).elem {
            Elem::Num(d) => Ok(d),
            Elem::Ptr(_) => {
                self.error(op, Code::BadElementType, format!("`{}` does not work on pointers", op.row.name))
            }
        }
    }

    /// A result is this value.
    pub fn bind(&mut self, op: &Op, i: usize, v: ValueId) -> Res<()> {
        let (Some(&result), want) = (op.results.get(i), self.gives(op, i)?) else { return Ok(()) };
        if *self.tile_ty(v) != want {
            let found = crate::cuda_tile::verify::show(&Type::Tile(self.tile_ty(v).clone()));
            let wanted = crate::cuda_tile::verify::show(&Type::Tile(want));
            let message = format!("`{}` gives {found}, and its type says {wanted}", op.row.name);
            return self.error(op, Code::TypeMismatch, message);
        }
        let name = &self.module.values[result].name;
        let named = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        if named && let Some(value @ Value { name: None, .. }) = Some(&mut self.func.values[v]) {
            value.name = Some(name.clone());
        }
        self.values[result.index()] = Some(v);
        Ok(())
    }

    /// The same with the operation's operands, of one result.
    pub fn simple(&mut self, op: &Op, opcode: Opcode) -> Res<()> {
        self.plain(op, opcode, vec![])
    }
    pub fn signed(&mut self, op: &Op, opcode: Opcode, sign: Signedness) -> Res<()> {
        self.plain(op, opcode, vec![(AttrKey::Signedness, Attr::Signedness(sign))])
    }
    pub fn plain(&mut self, op: &Op, opcode: Opcode, attrs: Vec<(AttrKey, Attr)>) -> Res<()> {
        let args = self.args(op)?;
        let wanted = ops::info(opcode).operands.len();
        self.count(op, wanted..=wanted)?;
        let groups: Vec<&[ValueId]> = args.iter().map(std::slice::from_ref).collect();
        let ty = self.gives(op, 0)?;
        let v = self.tile(opcode, &groups, attrs, ty);
        self.bind(op, 0, v)
    }

    // Emission.

    /// Appends an operation; its results.
    pub fn emit(
        &mut self,
        opcode: Opcode,
        groups: &[&[ValueId]],
        attrs: Vec<(AttrKey, Attr)>,
        results: Vec<Type>,
    ) -> Vec<ValueId> {
        let id = self.open(opcode, groups, attrs);
        self.close(id, vec![], results)
    }

    /// Appends an operation that has yet to get its regions and results.
    fn open(&mut self, opcode: Opcode, groups: &[&[ValueId]], attrs: Vec<(AttrKey, Attr)>) -> OpId {
        let op = TileOp {
            opcode,
            operands: groups.concat(),
            groups: groups.iter().map(|g| g.len() as u32).collect(),
            results: vec![],
            attrs,
            regions: vec![],
            span: self.span,
            loc: self.loc.clone(),
        };
        let id = self.func.ops.push(op);
        self.func.regions[self.region].ops.push(id);
        id
    }

    fn close(&mut self, id: OpId, regions: Vec<RegionId>, results: Vec<Type>) -> Vec<ValueId> {
        let span = self.func.ops[id].span;
        let made: Vec<ValueId> = (results.into_iter().enumerate())
            .map(|(index, ty)| {
                let def = ValueDef::Result { op: id, index: index as u32 };
                self.func.values.push(Value { ty, def, name: None, span })
            })
            .collect();
        let op = &mut self.func.ops[id];
        op.regions = regions;
        op.results = made.clone();
        made
    }

    /// Appends an operation that gives one tile.
    pub fn tile(
        &mut self,
        opcode: Opcode,
        groups: &[&[ValueId]],
        attrs: Vec<(AttrKey, Attr)>,
        ty: TileType,
    ) -> ValueId {
        self.emit(opcode, groups, attrs, vec![Type::Tile(ty)])[0]
    }

    /// An operation on tiles of one type, which it gives too.
    pub fn same(&mut self, opcode: Opcode, args: &[ValueId]) -> ValueId {
        self.same_with(opcode, args, vec![])
    }
    pub fn same_with(&mut self, opcode: Opcode, args: &[ValueId], attrs: Vec<(AttrKey, Attr)>) -> ValueId {
        let groups: Vec<&[ValueId]> = args.iter().map(std::slice::from_ref).collect();
        let ty = args
            .first()
            .map(|&v| self.tile_ty(v).clone())
            .unwrap_or_else(|| TileType::of(vec![], Elem::Num(DType::I1)));
        self.tile(opcode, &groups, attrs, ty)
    }

    pub fn constant(&mut self, elements: Elements) -> ValueId {
        let ty = TileType::of(elements.shape.clone(), Elem::Num(elements.dtype));
        self.tile(Opcode::Constant, &[], vec![(AttrKey::Value, Attr::Elements(elements))], ty)
    }
    /// A tile of one number, given as its bits.
    pub fn fill(&mut self, shape: &[u64], dtype: DType, bits: u64) -> ValueId {
        self.constant(Elements { dtype, shape: shape.to_vec(), bits: vec![bits & dtype.mask()] })
    }
    /// A tile of one float.
    pub fn float(&mut self, shape: &[u64], dtype: DType, value: f64) -> ValueId {
        let bits = crate::num::convert::from_f64(dtype, value, crate::num::op::Rounding::NearestEven);
        self.fill(shape, dtype, bits)
    }
    pub fn reshaped(&mut self, v: ValueId, shape: &[u64]) -> ValueId {
        let ty = self.tile_ty(v).clone();
        if ty.shape == shape {
            return v;
        }
        self.tile(Opcode::Reshape, &[&[v]], vec![], TileType { shape: shape.to_vec(), ..ty })
    }
    /// A tile whose dimensions of one element are repeated; a scalar in every element.
    pub fn spread(&mut self, v: ValueId, shape: &[u64]) -> ValueId {
        let ty = self.tile_ty(v).clone();
        if ty.shape == shape {
            return v;
        }
        let mut v = v;
        if ty.shape.is_empty() {
            v = self.reshaped(v, &vec![1; shape.len()]);
        }
        if self.tile_ty(v).shape == shape {
            return v;
        }
        self.tile(Opcode::Broadcast, &[&[v]], vec![], TileType { shape: shape.to_vec(), ..ty })
    }
    /// The same elements as another type.
    pub fn converted(&mut self, opcode: Opcode, v: ValueId, dtype: DType, attrs: Vec<(AttrKey, Attr)>) -> ValueId {
        let shape = self.tile_ty(v).shape.clone();
        self.tile(opcode, &[&[v]], attrs, TileType::of(shape, Elem::Num(dtype)))
    }

    // Order.

    fn token(&mut self, of: &[ValueId]) -> ValueId {
        match of {
            [] => self.emit(Opcode::MakeToken, &[], vec![], vec![Type::Token])[0],
            [one] => *one,
            _ => self.emit(Opcode::JoinTokens, &[of], vec![], vec![Type::Token])[0],
        }
    }
    /// The token that a read follows.
    pub fn before_read(&mut self) -> Option<ValueId> {
        self.order.written
    }
    pub fn did_read(&mut self, token: ValueId) {
        self.order.read.push(token);
    }
    /// The token that a write follows.
    pub fn before_write(&mut self) -> Option<ValueId> {
        let all: Vec<ValueId> = self.order.written.into_iter().chain(self.order.read.iter().copied()).collect();
        if all.is_empty() { None } else { Some(self.token(&all)) }
    }
    pub fn did_write(&mut self, token: ValueId) {
        self.order = Order { written: Some(token), read: vec![] };
    }
    /// A token after everything so far.
    fn after_all(&mut self) -> ValueId {
        match self.before_write() {
            Some(token) => token,
            None => self.token(&[]),
        }
    }
}

/// A type of Tile IR.
pub fn tile(ty: &Ty, span: Span, loc: &Loc) -> Res<TileType> {
    match ty {
        Ty::Tile(t) => Ok(t.clone()),
        Ty::Other(text) => {
            let message = format!("the type `{text}` is not supported");
            let d = Diagnostic::error(Code::UnknownType, message).at(span).from(loc.frames().into());
            Err(Box::new(d.maybe_help(crate::ttir::table::type_refusal(text))))
        }
    }
}
