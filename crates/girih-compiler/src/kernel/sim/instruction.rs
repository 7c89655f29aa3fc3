//! What kind of work a statement is, for counting.
//!
//! ```text
//! x: f32 = load a[tx]       global load        y: f32 = load row[tx]    shared load
//! z: f32 = addf32 x, y      arithmetic         if i < n {               control flow
//! ```

use std::fmt;

use crate::kernel::ir::{Address, Kernel, Space, Stmt, statements};

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

    fn of(kernel: &Kernel, stmt: &Stmt) -> Instruction {
        let space = |place: &Address| match place {
            Address::Mem { .. } => None,
            Address::Slot { buf, .. } => Some(kernel.slots.get(*buf).map_or(Space::Scratch, |s| s.space)),
        };
        match stmt {
            Stmt::Load { place, .. } | Stmt::LoadSome { place, .. } => match space(place) {
                None => Instruction::GlobalLoad,
                Some(Space::Shared | Space::Mbarrier) => Instruction::SharedLoad,
                Some(Space::Scratch) => Instruction::Local,
            },
            Stmt::Prefetch { .. } => Instruction::GlobalLoad,
            Stmt::LoadOf { .. } => Instruction::SharedLoad,
            Stmt::Store { place, .. } | Stmt::StoreSome { place, .. } => match space(place) {
                None => Instruction::GlobalStore,
                Some(Space::Shared | Space::Mbarrier) => Instruction::SharedStore,
                Some(Space::Scratch) => Instruction::Local,
            },
            Stmt::Rmw { .. } | Stmt::Cas { .. } => Instruction::Atomic,
            Stmt::Barrier
            | Stmt::ClusterBarrier
            | Stmt::SyncWarp
            | Stmt::InitBarrier { .. }
            | Stmt::Arrive { .. }
            | Stmt::WaitPhase { .. }
            | Stmt::Registers { .. }
            | Stmt::Fence(_) => Instruction::Barrier,
            Stmt::CopyAsync { .. } | Stmt::Commit | Stmt::WaitGroups { .. } | Stmt::CopyTensor { .. } => {
                Instruction::AsyncCopy
            }
            Stmt::StoreTensor { .. } | Stmt::StoreCommit | Stmt::StoreWait { .. } => Instruction::AsyncCopy,
            Stmt::Shuffle { .. } => Instruction::Shuffle,
            Stmt::LoadMatrix { .. } => Instruction::SharedLoad,
            Stmt::TileLoad { .. } | Stmt::TileStore { .. } | Stmt::TileDot { .. } => Instruction::Matrix,
            Stmt::Mma { .. } | Stmt::Wgmma { .. } => Instruction::Matrix,
            Stmt::WgmmaCommit | Stmt::WgmmaWait { .. } => Instruction::Barrier,
            Stmt::For { .. }
            | Stmt::Loop { .. }
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::If { .. }
            | Stmt::Poll
            | Stmt::Yield { .. } => Instruction::ControlFlow,
            Stmt::Print { .. } | Stmt::Assert { .. } | Stmt::Check { .. } => Instruction::Diagnostic,
            Stmt::Var { .. }
            | Stmt::Set { .. }
            | Stmt::Let { .. }
            | Stmt::Splat { .. }
            | Stmt::Ramp { .. }
            | Stmt::Index { .. }
            | Stmt::Test { .. }
            | Stmt::Lane { .. }
            | Stmt::SetLane { .. }
            | Stmt::Merge { .. }
            | Stmt::Every { .. }
            | Stmt::Interleave { .. }
            | Stmt::Reduce { .. }
            | Stmt::All { .. }
            | Stmt::GlobalAddr { .. }
            | Stmt::Scratch { .. } => Instruction::Arithmetic,
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
