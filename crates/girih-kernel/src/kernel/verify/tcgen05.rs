//! Rules of tensor memory: what is allocated, what instructions and operands their numbers say, and where sums go.

use super::Verifier;
use crate::kernel::ir::*;
use crate::kernel::tcgen05::{COLUMNS, Instruction, LEAST_COLUMNS, Matrix, MmaKind};
use crate::num::DType;

impl Verifier<'_> {
    pub(super) fn tcgen05(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Tcgen05Alloc { to, columns } => {
                let held = self.elem(to).held();
                self.expect(self.is_shared(to) && held == DType::I32, || {
                    format!("the address of tensor memory is stored in a shared slot of i32, not of {held}")
                });
                self.columns(*columns);
            }
            Stmt::Tcgen05Dealloc { columns, .. } => self.columns(*columns),
            Stmt::Tcgen05Mma { kind, a, b, instruction, .. } => self.product(*kind, [a, b], *instruction),
            Stmt::Tcgen05Load { acc, .. } | Stmt::Tcgen05Wait { acc } => self.array(*acc),
            _ => {}
        }
    }

    /// A block gives back the columns that it allocates.
    pub(super) fn tensor_memory(&mut self) {
        let (mut taken, mut given) = (vec![], vec![]);
        statements(&self.k.body, &mut |s| match s {
            Stmt::Tcgen05Alloc { columns, .. } => taken.push(*columns),
            Stmt::Tcgen05Dealloc { columns, .. } => given.push(*columns),
            _ => {}
        });
        let all = taken.iter().fold(0u32, |all, n| all.saturating_add(*n));
        taken.sort_unstable();
        given.sort_unstable();
        let list = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        self.expect(taken == given, || {
            let (taken, given) = (list(&taken), list(&given));
            format!("a block allocates [{taken}] columns of tensor memory and gives back [{given}]")
        });
        self.expect(all <= COLUMNS, || format!("a block allocates {all} columns of tensor memory, of {COLUMNS}"));
    }

    /// Columns of tensor memory that are allocated or given back together.
    fn columns(&mut self, columns: u32) {
        let good = columns.is_power_of_two() && (LEAST_COLUMNS..=COLUMNS).contains(&columns);
        self.expect(good, || {
            format!("columns of tensor memory are a power of two from {LEAST_COLUMNS} to {COLUMNS}, not {columns}")
        });
    }

    fn product(&mut self, kind: MmaKind, operands: [&Described; 2], instruction: u32) {
        let made = Instruction::decode(kind, instruction);
        if let Err(why) = &made {
            self.expect(false, || format!("`tcgen05 mma` by {instruction:#x}: {why}"));
        }
        for (n, of) in operands.into_iter().enumerate() {
            let (bits, bytes) = (self.elem(&of.place).held().bits(), kind.bytes());
            self.expect(bits == 8 * bytes, || {
                format!("an operand of `tcgen05 mma {}` has elements of {bytes} bytes, not {bits} bits", kind.word())
            });
            self.expect(self.is_shared(&of.place), || "an operand of `tcgen05 mma` is in a shared slot".to_string());
            match Matrix::decode(of.number) {
                Err(why) => self.expect(false, || format!("descriptor {:#x}: {why}", of.number)),
                Ok(_) => {
                    let across = made.as_ref().is_ok_and(|made| made.transposed[n]);
                    self.expect(!across || bytes != 4, || "operands of four bytes are not transposed".to_string());
                }
            }
        }
    }

    /// The array that a warp's lanes of tensor memory are loaded into.
    fn array(&mut self, acc: BufId) {
        let slot = self.k.slots.get(acc);
        let word = |elem: Elem| matches!(elem, Elem::Num(DType::F32 | DType::I32));
        let own = slot.is_some_and(|s| s.space == Space::Scratch && word(s.elem));
        self.expect(own, || "`tcgen05 load` loads into an array of the thread, of f32 or i32".to_string());
        let cols = slot.map_or(8, |s| s.len);
        self.expect(cols.is_multiple_of(8) && (8..=COLUMNS.into()).contains(&cols), || {
            format!("`tcgen05 load` loads a multiple of 8 columns up to {COLUMNS}, not {cols}")
        });
    }
}
