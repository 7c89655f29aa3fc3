//! Large kernels in parts: functions of a bounded size.
//!
//! C compilers take time that grows with the square of a function's size, or faster. The statements of a large kernel
//! are therefore printed as functions of some hundred statements each, which the kernel calls in turn; the time is then
//! linear in the size of the kernel.
//!
//! In: the body of a kernel. Out: [`Parts`]: the runs of statements that are functions of their own, and the names that
//! pass between them:
//!
//! ```text
//! typedef struct girih_0_live { const girih_args *args; girih_ctx *ctx; i64 block; f32 v; f32 w; } girih_0_live;
//! APART int32_t girih_0_part_2(girih_0_live *live) {
//!   ..                                         parameters and slots, as in a kernel
//!   f32 v = live->v;                           names that are defined elsewhere
//!   ..                                         the statements
//!   live->w = w;                               names that are used elsewhere
//!   return 0;
//! }
//! ```
//!
//! Invariants:
//! 1. A part is a run of neighbours in one body and calls no other part. The kernel keeps the statements that are
//!    longer than a part, whose bodies are cut likewise.
//! 2. A name that several functions use has a field, which is up to date wherever the kernel calls a part. A name that
//!    one function uses alone has none. Parameters, slots and the block's position are derived in each function again.
//! 3. Only the statements' own parts tell which names a function uses, so that a new statement needs nothing here.

use std::collections::BTreeSet;

use crate::index::{Ix, Mask};
use crate::kernel::ir::*;
use rustc_hash::FxHashMap;

/// Numbers of statements, counted with those inside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A kernel of more statements is cut.
    pub large: usize,
    /// The most statements of a part.
    pub most: usize,
    /// A run of fewer statements stays in the kernel.
    pub fewest: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { large: 2000, most: 500, fewest: 8 }
    }
}

/// The reasons for which a part returns: it is through, the launch stops, or a statement leaves a body of the kernel.
pub const STOPS: u32 = 1;
pub const RETURNS: u32 = 2;
pub const BREAKS: u32 = 3;
pub const CONTINUES: u32 = 4;

/// A name of a local variable in C.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Name {
    Val(ValId),
    Axis(AxisId),
}

/// The names that a function uses, and how.
#[derive(Default)]
struct Uses {
    all: BTreeSet<Name>,
    updated: BTreeSet<Name>,
    /// The reasons for which a part returns early.
    leaves: BTreeSet<u32>,
}

/// The functions of a kernel: number 0 is the kernel itself, and the others are parts.
pub struct Parts {
    functions: Vec<Uses>,
    /// The function that defines each name.
    owner: FxHashMap<Name, usize>,
    /// The part that begins at a statement of this number, and how many neighbours it has.
    begins: FxHashMap<usize, (usize, usize)>,
    /// The names that several functions use.
    shared: BTreeSet<Name>,
    /// The number of the next statement, counted in order of the text.
    next: usize,
    limits: Limits,
}

impl Parts {
    /// `None` for a kernel that is one function.
    pub fn of(kernel: &Kernel, limits: Limits) -> Option<Parts> {
        if count(&kernel.body) <= limits.large {
            return None;
        }
        let mut parts = Parts {
            functions: vec![Uses::default()],
            owner: FxHashMap::default(),
            begins: FxHashMap::default(),
            shared: BTreeSet::new(),
            next: 0,
            limits,
        };
        parts.cut(&kernel.body);
        let mut seen = BTreeSet::new();
        for name in parts.functions.iter().flat_map(|f| &f.all) {
            if !seen.insert(*name) && parts.owner.contains_key(name) {
                parts.shared.insert(*name);
            }
        }
        Some(parts)
    }

    /// The part that begins at a statement, and how many statements of the same body it has.
    pub fn begins(&self, statement: usize) -> Option<(usize, usize)> {
        self.begins.get(&statement).copied()
    }

    /// The names that have a field.
    pub fn fields(&self) -> impl Iterator<Item = Name> {
        self.shared.iter().copied()
    }

    /// The names that a part reads from their fields when it begins.
    pub fn read(&self, part: usize) -> Vec<Name> {
        self.shared_of(part).filter(|name| self.owner[name] != part).collect()
    }

    /// The names that a part writes to their fields when it is through.
    pub fn written(&self, part: usize) -> Vec<Name> {
        self.shared_of(part).filter(|name| self.owner[name] == part || self.updates(part, name)).collect()
    }

    /// The names that a part writes to their fields when it leaves a loop of the kernel.
    pub fn written_early(&self, part: usize) -> Vec<Name> {
        self.shared_of(part).filter(|name| self.owner[name] != part && self.updates(part, name)).collect()
    }

    /// The names that the kernel writes to their fields before it calls a part.
    pub fn passed(&self, part: usize) -> Vec<Name> {
        let current = |name: &Name| self.owner[name] == 0 || self.updates(0, name);
        self.shared_of(part).filter(|name| self.functions[0].all.contains(name) && current(name)).collect()
    }

    /// The names that the kernel reads from their fields behind the call of a part, and whether the part defines them.
    pub fn given(&self, part: usize) -> Vec<(Name, bool)> {
        let own = self.shared_of(part).filter(|name| self.functions[0].all.contains(name));
        own.map(|name| (name, self.owner[&name] == part))
            .filter(|(name, defined)| *defined || self.updates(part, name))
            .collect()
    }

    /// The reasons for which a part returns early.
    pub fn leaves(&self, part: usize) -> &BTreeSet<u32> {
        &self.functions[part].leaves
    }

    fn shared_of(&self, part: usize) -> impl Iterator<Item = Name> {
        self.functions[part].all.iter().copied().filter(|name| self.shared.contains(name))
    }

    fn updates(&self, function: usize, name: &Name) -> bool {
        self.functions[function].updated.contains(name)
    }

    /// Cuts a body of the kernel into parts and the statements that are longer than one.
    fn cut(&mut self, body: &[Stmt]) {
        let mut rest = body;
        while let [stmt, behind @ ..] = rest {
            let (run, size) = run(rest, self.limits.most);
            if run == 0 {
                self.note(0, stmt, 0);
                stmt.parts(&mut |part| {
                    if let Part::Body(body) = part {
                        self.cut(body);
                    }
                });
                rest = behind;
                continue;
            }
            let function = if size < self.limits.fewest { 0 } else { self.functions.len() };
            if function > 0 {
                self.functions.push(Uses::default());
                self.begins.insert(self.next, (function, run));
            }
            let (taken, behind) = rest.split_at(run);
            self.note_all(function, taken, 0);
            rest = behind;
        }
    }

    fn note_all(&mut self, function: usize, body: &[Stmt], loops: usize) {
        for stmt in body {
            self.note(function, stmt, loops);
            let inner = loops + usize::from(matches!(stmt, Stmt::For { .. } | Stmt::Loop { .. }));
            stmt.parts(&mut |part| {
                if let Part::Body(body) = part {
                    self.note_all(function, body, inner);
                }
            });
        }
    }

    /// Notes what a statement itself, without its bodies, uses; `loops` of the function are around it.
    fn note(&mut self, function: usize, stmt: &Stmt, loops: usize) {
        self.next += 1;
        let reason = match stmt {
            Stmt::Poll | Stmt::Assert { .. } | Stmt::Check { .. } => Some(STOPS),
            Stmt::Return => Some(RETURNS),
            Stmt::Break if loops == 0 => Some(BREAKS),
            Stmt::Continue if loops == 0 => Some(CONTINUES),
            _ => None,
        };
        self.functions[function].leaves.extend(reason);
        stmt.parts(&mut |part| {
            let defined = match part {
                Part::Defines(val) => Some(Name::Val(val)),
                Part::Axis(axis) => Some(Name::Axis(axis)),
                _ => None,
            };
            if let Some(name) = defined {
                self.owner.insert(name, function);
            }
            let uses = &mut self.functions[function];
            if let Part::Updates(val) = part {
                uses.updated.insert(Name::Val(val));
            }
            names(part, &mut |name| {
                uses.all.insert(name);
            });
        });
    }
}

/// How many of the first statements fit in a part, and how many statements these are with those inside them.
fn run(body: &[Stmt], most: usize) -> (usize, usize) {
    let (mut run, mut size) = (0, 0);
    for stmt in body {
        let more = size + count(std::slice::from_ref(stmt));
        if more > most {
            break;
        }
        (run, size) = (run + 1, more);
    }
    (run, size)
}

/// Statements with those inside them.
fn count(body: &[Stmt]) -> usize {
    let mut n = 0;
    statements(body, &mut |_| n += 1);
    n
}

/// The names in a part of a statement.
fn names(part: Part<'_>, each: &mut dyn FnMut(Name)) {
    match part {
        Part::Defines(val) | Part::Updates(val) | Part::Feeds(val) => each(Name::Val(val)),
        Part::Moves(Opnd::Val(val)) | Part::Takes(Opnd::Val(val)) | Part::Shows(Opnd::Val(val)) => each(Name::Val(val)),
        Part::Moves(Opnd::Const { .. }) | Part::Takes(Opnd::Const { .. }) | Part::Shows(Opnd::Const { .. }) => {}
        Part::Index(ix) => of_index(ix, each),
        Part::Mask(mask) => of_mask(mask, each),
        Part::At(Address::Mem { base, index, .. }, _) => {
            each(Name::Val(*base));
            of_index(index, each);
        }
        Part::At(Address::Slot { index, .. }, _) => of_index(index, each),
        Part::Axis(axis) => each(Name::Axis(axis)),
        Part::Slot(..) | Part::Tensor(..) | Part::Body(_) => {}
    }
}

fn of_index(ix: &Ix, each: &mut dyn FnMut(Name)) {
    ix.for_each_leaf(&mut |leaf| match leaf {
        Ix::Axis(axis) => each(Name::Axis(*axis)),
        Ix::Val { val, .. } => each(Name::Val(*val)),
        _ => {}
    });
}

fn of_mask(mask: &Mask, each: &mut dyn FnMut(Name)) {
    for cond in &mask.conds {
        of_index(&cond.lhs, each);
        of_index(&cond.rhs, each);
    }
    mask.vals.iter().for_each(|val| each(Name::Val(*val)));
}
