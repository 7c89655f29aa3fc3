//! The kind of work of each statement, for counting.
//!
//! ```text
//! x: f32 = load a[tx]       global load        y: f32 = load row[tx]    shared load
//! z: f32 = addf32 x, y      arithmetic         if i < n {               control flow
//! ```

use std::fmt;

use crate::kernel::ir::{Address, Kernel, Part, Space, Stmt, Work, statements};

/// A kind of statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Instruction {
    Arithmetic,
    ControlFlow,
    GlobalLoad,
    GlobalStore,
    SharedLoad,
    SharedStore,
    /// A load or a store of an array of the thread's own: of registers, where every index is known when it is compiled.
    Local,
    Atomic,
    Barrier,
    /// A copy from global to shared memory that goes on while its thread does other things.
    AsyncCopy,
    Shuffle,
    /// A product on the matrix unit.
    Matrix,
    /// Printing, assertions, checks.
    Diagnostic,
}

impl Instruction {
    /// `global load`, for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Instruction::Arithmetic => "arithmetic",
            Instruction::ControlFlow => "control flow",
            Instruction::GlobalLoad => "global load",
            Instruction::GlobalStore => "global store",
            Instruction::SharedLoad => "shared load",
            Instruction::SharedStore => "shared store",
            Instruction::Local => "own array",
            Instruction::Atomic => "atomic",
            Instruction::Barrier => "barrier",
            Instruction::AsyncCopy => "asynchronous copy",
            Instruction::Shuffle => "shuffle",
            Instruction::Matrix => "matrix",
            Instruction::Diagnostic => "diagnostic",
        }
    }

    pub(super) fn of(kernel: &Kernel, stmt: &Stmt) -> Instruction {
        let space = |place: &Address| match place {
            Address::Mem { .. } => None,
            Address::Slot { buf, .. } => Some(kernel.slots.get(*buf).map_or(Space::Scratch, |s| s.space)),
        };
        let mut at = None;
        stmt.parts(&mut |part| {
            if let Part::At(place, _) = part {
                at = at.or(Some(space(place)));
            }
        });
        match (stmt.work(), at.flatten()) {
            (Work::Load | Work::Store, Some(Space::Scratch | Space::Kept { .. })) => Instruction::Local,
            (Work::Load, Some(Space::Shared | Space::Mbarrier)) => Instruction::SharedLoad,
            (Work::Load, None) => Instruction::GlobalLoad,
            (Work::Store, Some(Space::Shared | Space::Mbarrier)) => Instruction::SharedStore,
            (Work::Store, None) => Instruction::GlobalStore,
            (Work::Arithmetic, _) => Instruction::Arithmetic,
            (Work::ControlFlow, _) => Instruction::ControlFlow,
            (Work::Atomic, _) => Instruction::Atomic,
            (Work::Barrier, _) => Instruction::Barrier,
            (Work::AsyncCopy, _) => Instruction::AsyncCopy,
            (Work::Shuffle, _) => Instruction::Shuffle,
            (Work::Matrix, _) => Instruction::Matrix,
            (Work::Diagnostic, _) => Instruction::Diagnostic,
        }
    }

    /// The kind of every statement, in order of the text.
    pub(super) fn all(kernel: &Kernel) -> Vec<Instruction> {
        let mut out = vec![];
        statements(&kernel.body, &mut |stmt| out.push(Instruction::of(kernel, stmt)));
        out
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
