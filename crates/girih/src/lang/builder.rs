//! Tile IR under construction: values, operations, regions, and their text. The counterpart of the Python package's
//! `frontend/builder.py`.
//!
//! Invariants: a value is used only in its region or in regions inside it, which [`Builder::op`] checks; constants are in the
//! entry's region, once each; memory operations are chained by tokens in the order of the program. A mistake is noted, and its
//! result is [`WRONG`], which makes everything computed of it [`WRONG`] in silence, so that one run finds all mistakes.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::panic::Location;

use girih_compiler::base::{Code, Diagnostic, Frame, Location as Place};

use super::element::{Constant, Elem, ElementType};

pub type Id = usize;

/// The value that a mistake gives.
pub const WRONG: Id = 0;

/// No kernel has more operations than this; loops of Rust around operations would otherwise fill the memory.
const MOST_OPERATIONS: usize = 1 << 20;
const MOST_ELEMENTS: i64 = 1 << 24;
const MOST_ERRORS: usize = 20;

struct Value {
    /// None for a token.
    ty: Option<ElementType>,
    shape: Vec<i32>,
    hint: String,
    region: usize,
    /// The value that this one is under another type: integers of Tile IR have no sign.
    same: Option<Id>,
}

pub enum Piece {
    Text(String),
    Value(Id),
    /// The braces and the operations of the next region.
    Region,
    /// An argument of a region, where it is introduced.
    Arg(Id),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Piece {
        Piece::Text(text.to_string())
    }
}
impl From<String> for Piece {
    fn from(text: String) -> Piece {
        Piece::Text(text)
    }
}
impl From<Id> for Piece {
    fn from(value: Id) -> Piece {
        Piece::Value(value)
    }
}

/// The end of an iteration: `break` or `continue` of a loop, whose operands are settled when the loop is.
pub struct End {
    pub of: usize,
    pub word: &'static str,
    pub values: Vec<Id>,
    pub token: Id,
}

pub struct Op {
    pub pieces: Vec<Piece>,
    pub results: Vec<Id>,
    pub regions: Vec<Region>,
    pub place: &'static Location<'static>,
    pub pure: bool,
    pub end: Option<End>,
}

pub struct Region {
    id: usize,
    pub ops: Vec<Op>,
    pub touches_memory: bool,
    /// True if it already has its terminator.
    pub ended: bool,
}

/// A loop or a branch that is being built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    Unrolled(usize),
    Loop(usize),
    If,
}

pub struct Builder {
    name: String,
    values: Vec<Value>,
    pub params: Vec<Id>,
    regions: Vec<Region>,
    /// The regions that values in sight belong to.
    next_region: usize,
    next_context: usize,
    pub place: &'static Location<'static>,
    constants: HashMap<(String, String, Vec<i32>), Id>,
    constant_ops: Vec<Op>,
    pub written: Option<Id>,
    pub read: Vec<Id>,
    pub contexts: Vec<Context>,
    /// A loop of Rust is being left, or goes on to its next iteration.
    pub leaving: bool,
    operations: usize,
    pub errors: Vec<Diagnostic>,
}

thread_local! {
    static CURRENT: RefCell<Option<Builder>> = const { RefCell::new(None) };
}

/// Runs `f` on the kernel being built; the caller's line is the place of the operations that follow.
#[track_caller]
pub fn here<R>(f: impl FnOnce(&mut Builder) -> R) -> R {
    let place = Location::caller();
    CURRENT.with(|current| {
        let mut current = current.borrow_mut();
        // Tiles come into being in kernels only.
        let builder = current.as_mut().unwrap_or_else(|| {
            panic!(
                "{place}: this function of girih::lang works only inside a kernel: a function marked #[girih::kernel]"
            )
        });
        // Operations that functions of this module add belong to the line that called them.
        if !is_own(place) {
            builder.place = place;
        }
        f(builder)
    })
}

/// Returns true if a line is in this module.
fn is_own(place: &Location) -> bool {
    let folder = file!().strip_suffix("builder.rs").unwrap_or(file!());
    place.file().starts_with(folder)
}

/// Builds a kernel by running `body`.
pub fn build(builder: Builder, body: &dyn Fn()) -> Builder {
    /// Restores the builder that was active before, also after a panic.
    struct Outer(Option<Builder>);
    impl Drop for Outer {
        fn drop(&mut self) {
            CURRENT.with(|c| *c.borrow_mut() = self.0.take());
        }
    }
    let outer = Outer(CURRENT.with(|c| c.borrow_mut().replace(builder)));
    body();
    let built = CURRENT.with(|c| c.borrow_mut().take());
    drop(outer);
    // It was put there above, and only this function takes it.
    built.unwrap_or_else(|| unreachable!("the kernel being built is gone"))
}

impl Region {
    /// The placeholder for a region that was taken out.
    pub fn none() -> Region {
        Region { id: usize::MAX, ops: Vec::new(), touches_memory: false, ended: false }
    }
}

impl Builder {
    pub fn new(name: &str, place: &'static Location<'static>) -> Builder {
        let mut builder = Builder {
            name: name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect(),
            values: Vec::new(),
            params: Vec::new(),
            regions: vec![Region { id: 0, ops: Vec::new(), touches_memory: false, ended: false }],
            next_region: 1,
            next_context: 0,
            place,
            constants: HashMap::new(),
            constant_ops: Vec::new(),
            written: None,
            read: Vec::new(),
            contexts: Vec::new(),
            leaving: false,
            operations: 0,
            errors: Vec::new(),
        };
        builder.value(None, &[], "wrong");
        builder
    }

    pub fn parameter(&mut self, name: &str, ty: ElementType) {
        let id = self.value(Some(ty), &[], name);
        self.params.push(id);
    }

    // ---- mistakes

    pub fn fail(&mut self, message: impl Into<String>, help: Option<&str>) -> Id {
        if self.errors.len() < MOST_ERRORS {
            let place = Place { file: self.place.file().into(), line: self.place.line(), column: self.place.column() };
            let mut error = Diagnostic::error(Code::PythonKernel, message);
            error.help = help.map(String::from);
            error.frames = [Frame { function: None, place }].into();
            // A loop of Rust makes the same mistake in each iteration.
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
        WRONG
    }

    // ---- values

    pub fn value(&mut self, ty: Option<ElementType>, shape: &[i32], hint: &str) -> Id {
        let region = self.regions.last().map_or(0, |r| r.id);
        let plain = hint.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let hint = if plain { hint.to_string() } else { String::new() };
        self.values.push(Value { ty, shape: shape.to_vec(), hint, region, same: None });
        self.values.len() - 1
    }
    pub fn token(&mut self, hint: &str) -> Id {
        self.value(None, &[], hint)
    }
    pub fn ty(&self, id: Id) -> ElementType {
        self.values[id].ty.unwrap_or(<i32 as Elem>::TYPE)
    }
    pub fn shape(&self, id: Id) -> Vec<i32> {
        self.values[id].shape.clone()
    }
    pub fn describe(&self, id: Id) -> String {
        self.ty(id).spell(&self.values[id].shape)
    }
    pub fn ir_type(&self, id: Id) -> String {
        let value = &self.values[id];
        value.ty.map_or_else(|| "token".to_string(), |ty| ty.tile_ir(&value.shape))
    }
    pub fn name_value(&mut self, id: Id, hint: &str) {
        if let Some(value) = self.values.get_mut(id).filter(|v| v.hint.is_empty()) {
            value.hint = hint.to_string();
        }
    }

    /// The same bits as an integer of the other sign.
    pub fn renamed(&mut self, x: Id, ty: ElementType) -> Id {
        let same = self.root(x);
        let (shape, region) = (self.shape(x), self.values[same].region);
        self.values.push(Value { ty: Some(ty), shape, hint: String::new(), region, same: Some(same) });
        self.values.len() - 1
    }
    /// The value that stands in the text.
    pub fn root(&self, id: Id) -> Id {
        self.values[id].same.unwrap_or(id)
    }

    // ---- operations

    pub fn op(&mut self, mut pieces: Vec<Piece>, results: &[Id], regions: Vec<Region>, pure: bool) {
        self.operations += 1;
        if self.operations > MOST_OPERATIONS {
            if self.operations == MOST_OPERATIONS + 1 {
                let help = "loop over `range(a, b)`, which is not unrolled";
                self.fail(format!("the kernel has more than {MOST_OPERATIONS} operations"), Some(help));
            }
            return;
        }
        for piece in &mut pieces {
            if let Piece::Value(id) = piece {
                *id = self.root(*id);
            }
        }
        let operands: Vec<Id> =
            pieces.iter().filter_map(|p| if let Piece::Value(id) = p { Some(*id) } else { None }).collect();
        if !self.check_sight(&operands) {
            return;
        }
        let place = self.place;
        let op = Op { pieces, results: results.to_vec(), regions, place, pure, end: None };
        if let Some(region) = self.regions.last_mut() {
            region.ops.push(op);
        }
    }

    fn check_sight(&mut self, values: &[Id]) -> bool {
        let seen = |id: &Id| self.regions.iter().any(|r| r.id == self.values[*id].region);
        let fine = values.iter().all(seen);
        if !fine {
            let message =
                "a value is used here that was computed inside of a loop or of an `if`, and was not carried out of it";
            self.fail(message, Some("assign it to a variable that is declared before the loop"));
        }
        fine
    }

    /// An operation with one result; [`WRONG`] where an operand is.
    pub fn compute(&mut self, ty: ElementType, shape: &[i32], pieces: Vec<Piece>) -> Id {
        if pieces.iter().any(|p| matches!(p, Piece::Value(WRONG))) {
            return WRONG;
        }
        let result = self.value(Some(ty), shape, "");
        self.op(pieces, &[result], Vec::new(), true);
        result
    }

    pub fn constant<T: Constant>(&mut self, value: T, shape: &[i32]) -> Id {
        self.spelled(T::TYPE, value.spell(), shape)
    }
    pub fn spelled(&mut self, ty: ElementType, text: String, shape: &[i32]) -> Id {
        let key = (ty.name.to_string(), text.clone(), shape.to_vec());
        if let Some(&id) = self.constants.get(&key) {
            return id;
        }
        let hint = text.replace('-', "minus_").replace(['.', '+'], "_");
        let id = self.value(Some(ty), shape, &format!("c_{hint}"));
        // Constants stand before everything else.
        self.values[id].region = 0;
        let pieces = vec![Piece::Text(format!("constant <{}: {text}> : {}", ty.ir(), ty.tile_ir(shape)))];
        let place = self.place;
        self.constant_ops.push(Op { pieces, results: vec![id], regions: vec![], place, pure: true, end: None });
        self.constants.insert(key, id);
        id
    }

    // ---- regions

    pub fn enter(&mut self) {
        let id = self.next_region;
        self.next_region += 1;
        self.regions.push(Region { id, ops: Vec::new(), touches_memory: false, ended: false });
    }
    pub fn exit(&mut self) -> Region {
        // Each `exit` belongs to an `enter`; the entry's region stays.
        match self.regions.len() {
            0 | 1 => Region::none(),
            _ => self.regions.pop().unwrap_or_else(Region::none),
        }
    }
    /// Enters a region again.
    pub fn enter_again(&mut self, region: Region) {
        self.regions.push(region);
    }
    pub fn ended(&self) -> bool {
        self.regions.last().is_some_and(|r| r.ended)
    }
    pub fn set_ended(&mut self) {
        if let Some(region) = self.regions.last_mut() {
            region.ended = true;
        }
    }
    /// Puts the operations of another region at the end of the one in hand.
    pub fn splice(&mut self, region: Region) {
        for value in &mut self.values {
            if value.region == region.id {
                value.region = self.regions.last().map_or(0, |r| r.id);
            }
        }
        if let Some(last) = self.regions.last_mut() {
            last.ops.extend(region.ops);
            last.ended |= region.ended;
        }
    }
    pub fn new_context(&mut self) -> usize {
        self.next_context += 1;
        self.next_context
    }
    pub fn end(&mut self, end: End) {
        self.check_sight(&end.values);
        let place = self.place;
        let op = Op { pieces: vec![], results: vec![], regions: vec![], place, pure: false, end: Some(end) };
        if let Some(region) = self.regions.last_mut() {
            region.ops.push(op);
            region.ended = true;
        }
    }

    // ---- memory order

    pub fn before_read(&self) -> Option<Id> {
        self.written
    }
    pub fn before_write(&mut self) -> Option<Id> {
        match self.read.len() {
            0 => {}
            1 => self.written = self.read.pop(),
            _ => {
                let tokens = std::mem::take(&mut self.read);
                let joined = self.token("joined");
                let mut pieces = vec![Piece::from("join_tokens ")];
                pieces.extend(commas(&tokens));
                pieces.push(" : token".into());
                self.op(pieces, &[joined], vec![], true);
                self.written = Some(joined);
            }
        }
        self.written
    }
    pub fn did_read(&mut self, token: Id) {
        self.read.push(token);
        self.regions.iter_mut().for_each(|r| r.touches_memory = true);
    }
    pub fn did_write(&mut self, token: Id) {
        (self.written, self.read) = (Some(token), Vec::new());
        self.regions.iter_mut().for_each(|r| r.touches_memory = true);
    }
    /// One token for everything so far; starts the chain if there is none.
    pub fn one_token(&mut self) -> Id {
        let token = self.before_write().unwrap_or_else(|| {
            let token = self.token("start");
            self.op(vec!["make_token : token".into()], &[token], vec![], true);
            token
        });
        (self.written, self.read) = (Some(token), Vec::new());
        token
    }

    // ---- shapes

    /// Returns true if a shape is possible; reports why not.
    pub fn check_shape(&mut self, shape: &[i32], what: &str) -> bool {
        if let Some(n) = shape.iter().find(|n| **n < 1 || !(**n as u32).is_power_of_two()) {
            let help = "take the next one, `next_power_of_2(n)`, and mask what lies beyond the end";
            self.fail(format!("{what} must be made of powers of two, but {n} is not one"), Some(help));
            return false;
        }
        let count = shape.iter().fold(1i64, |count, n| count.saturating_mul(i64::from(*n)));
        if count > MOST_ELEMENTS {
            let message = format!("a tile can have at most {MOST_ELEMENTS} elements, but {shape:?} has {count}");
            self.fail(message, None);
        }
        count <= MOST_ELEMENTS
    }

    pub fn reshape(&mut self, x: Id, shape: &[i32]) -> Id {
        if x == WRONG || self.values[x].shape == shape {
            return x;
        }
        let ty = self.ty(x);
        let types = format!(" : {} -> {}", self.ir_type(x), ty.tile_ir(shape));
        self.compute(ty, shape, vec!["reshape ".into(), x.into(), types.into()])
    }

    pub fn broadcast_to(&mut self, x: Id, shape: &[i32]) -> Id {
        let own = self.shape(x);
        if x == WRONG || own == shape {
            return x;
        }
        let mut padded = vec![1; shape.len().saturating_sub(own.len())];
        padded.extend(&own);
        if padded.len() != shape.len() || padded.iter().zip(shape).any(|(a, b)| *a != 1 && a != b) {
            let message = format!("{} cannot be broadcast to the shape {shape:?}", self.describe(x));
            return self.fail(message, None);
        }
        let x = self.reshape(x, &padded);
        if padded == shape {
            return x;
        }
        let ty = self.ty(x);
        let types = format!(" : {} -> {}", self.ir_type(x), ty.tile_ir(shape));
        self.compute(ty, shape, vec!["broadcast ".into(), x.into(), types.into()])
    }

    /// The shape that all of them broadcast to; `None` where they do not, or one is wrong.
    pub fn common_shape(&mut self, tiles: &[Id]) -> Option<Vec<i32>> {
        if tiles.contains(&WRONG) {
            return None;
        }
        let shapes: Vec<Vec<i32>> = tiles.iter().map(|t| self.shape(*t)).collect();
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut common = vec![1; rank];
        for shape in &shapes {
            for (i, &n) in shape.iter().enumerate() {
                let at = &mut common[rank - shape.len() + i];
                if *at != 1 && n != 1 && *at != n {
                    let all: Vec<String> = shapes.iter().map(|s| format!("{s:?}")).collect();
                    let message = format!(
                        "the shapes {} do not match: dimension {} is {at} in one and {n} in the other",
                        all.join(" and "),
                        rank - shape.len() + i
                    );
                    let help =
                        "dimensions match when they are equal or one of them is 1; add one with `x.expand_dims(1)`";
                    self.fail(message, Some(help));
                    return None;
                }
                *at = (*at).max(n);
            }
        }
        Some(common)
    }

    /// The tiles in their common shape; all of them [`WRONG`] where there is none.
    pub fn together<const N: usize>(&mut self, tiles: [Id; N]) -> ([Id; N], Vec<i32>) {
        match self.common_shape(&tiles) {
            Some(shape) => (tiles.map(|t| self.broadcast_to(t, &shape)), shape),
            None => ([WRONG; N], Vec::new()),
        }
    }

    /// An axis counted from the front, or from the end where it is negative.
    pub fn axis(&mut self, x: Id, axis: i32) -> Option<usize> {
        let rank = self.values[x].shape.len() as i32;
        if x == WRONG {
            return None;
        }
        if axis < -rank || axis >= rank {
            let dimensions = if rank == 1 { "dimension" } else { "dimensions" };
            let message = format!("the axis is {axis}, but {} has {rank} {dimensions}", self.describe(x));
            self.fail(message, None);
            return None;
        }
        Some(axis.rem_euclid(rank) as usize)
    }

    // ---- text

    /// The kernel as Tile IR; with `places`, each operation carries its line.
    pub fn text(mut self, places: bool) -> String {
        let mut ops = std::mem::take(&mut self.constant_ops);
        if let Some(entry) = self.regions.first_mut() {
            ops.append(&mut entry.ops);
        }
        let mut used = HashSet::new();
        let ops = live(ops, &mut used);
        let mut printer =
            Printer { builder: &self, names: HashMap::new(), taken: HashMap::new(), out: String::new(), places };
        printer.module(&ops);
        printer.out
    }
}

/// The operations whose results are used, or that do something besides.
fn live(ops: Vec<Op>, used: &mut HashSet<Id>) -> Vec<Op> {
    let mut kept = Vec::new();
    for mut op in ops.into_iter().rev() {
        if op.pure && !op.results.iter().any(|r| used.contains(r)) {
            continue;
        }
        let regions = std::mem::take(&mut op.regions);
        let mut lived: Vec<Region> =
            regions.into_iter().rev().map(|r| Region { ops: live(r.ops, used), ..r }).collect();
        lived.reverse();
        op.regions = lived;
        used.extend(op.pieces.iter().filter_map(|p| if let Piece::Value(id) = p { Some(*id) } else { None }));
        kept.push(op);
    }
    kept.reverse();
    kept
}

pub fn commas(values: &[Id]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        if i > 0 {
            pieces.push(", ".into());
        }
        pieces.push(value.into());
    }
    pieces
}

struct Printer<'b> {
    builder: &'b Builder,
    names: HashMap<Id, String>,
    taken: HashMap<String, usize>,
    out: String,
    places: bool,
}

impl Printer<'_> {
    fn module(&mut self, ops: &[Op]) {
        let builder = self.builder;
        let name = &builder.name;
        let params: Vec<String> =
            builder.params.iter().map(|&p| format!("{}: {}", self.define(p), builder.ir_type(p))).collect();
        let _ = writeln!(self.out, "cuda_tile.module @{name} {{\n  entry @{name}({}) {{", params.join(", "));
        self.body(ops, 2);
        self.out += "  }\n}\n";
    }

    fn define(&mut self, id: Id) -> String {
        let hint = self.builder.values[id].hint.clone();
        let mut name = if hint.is_empty() || !self.taken.contains_key(&hint) { hint.clone() } else { String::new() };
        while name.is_empty() || self.taken.contains_key(&name) {
            let count = self.taken.entry(hint.clone()).or_insert(0);
            *count += 1;
            name = if hint.is_empty() { format!("v{count}") } else { format!("{hint}_{count}") };
        }
        self.taken.entry(name.clone()).or_insert(0);
        let name = format!("%{name}");
        self.names.insert(id, name.clone());
        name
    }

    fn body(&mut self, ops: &[Op], depth: usize) {
        for op in ops {
            self.out += &"  ".repeat(depth);
            let results: Vec<String> = op.results.iter().map(|r| self.define(*r)).collect();
            if !results.is_empty() {
                self.out += &format!("{} = ", results.join(", "));
            }
            let mut regions = op.regions.iter();
            for piece in &op.pieces {
                match piece {
                    Piece::Text(text) => self.out += text,
                    // Every value that is used is defined before, which `op` has checked.
                    Piece::Value(id) => self.out += self.names.get(id).map_or("%wrong", String::as_str),
                    Piece::Arg(id) => {
                        let name = self.define(*id);
                        self.out += &name;
                    }
                    Piece::Region => {
                        self.out += "{\n";
                        if let Some(region) = regions.next() {
                            self.body(&region.ops, depth + 1);
                        }
                        self.out += &"  ".repeat(depth);
                        self.out += "}";
                    }
                }
            }
            if self.places {
                let place = op.place;
                let _ = write!(self.out, " loc({}:{}:{})", quote(place.file()), place.line(), place.column());
            }
            self.out += "\n";
        }
    }
}

/// A text as Tile IR writes it.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                let _ = write!(out, "\\{byte:02X}");
            }
            0x20..0x7F => out.push(byte as char),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out + "\""
}
