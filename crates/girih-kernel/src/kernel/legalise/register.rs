//! Register buffers: named vector variables instead of memory.
//!
//! ```text
//! local acc: f32[2, 32] register(16)
//! for i in 0..2: free unroll                     acc_0_0: f32x16 = ...   (and acc_0_1, acc_1_0, acc_1_1)
//!   for j in 0..32: free vector(16)       -->
//!     acc[i, j] = ...
//! for k in 0..64: reduce                         for k in 0..64 step 1 {
//!   for i in 0..2: free unroll                     a: f32 = load A[k]           a_v: f32x16 = splat a
//!     a: f32 = load A[i*64 + k]                    c = fma a_v, b_0, acc_0_0    acc_0_0 = c ...
//!     for j in 0..32: free vector(16)
//!       ...
//! ```
//!
//! Registers have no addresses, so loops whose bodies touch them are written out: then each access names one variable.

use super::scalar::zero;
use super::{Lower, Res, Storage, Vector, ty};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::walk::{self, Part};
use rustc_hash::FxHashMap;

/// The vector variables of a buffer, in row-major order: consecutive values of the kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Registers {
    first: k::ValId,
    lanes: u32,
}

impl Lower<'_> {
    /// The variables of a register buffer. Each is declared where it is first written.
    pub(super) fn local_registers(&mut self, buf: l::BufId, lanes: u32) -> Res<()> {
        let b = self.buf(buf)?;
        let (Some((width, rows)), true) = (b.shape.split_last(), lanes > 0) else {
            return Err(format!("the register buffer {} has no extents", b.name));
        };
        let (vectors, rows) = (width / u64::from(lanes), rows.iter().product::<u64>());
        if vectors.saturating_mul(rows) > MOST_REGISTERS {
            return Err(format!("the register buffer {} needs more than {MOST_REGISTERS} vectors", b.name));
        }
        let mut first = None;
        for row in 0..rows {
            for vector in 0..vectors {
                let var = self.value(&format!("{}_{row}_{vector}", b.name), ty(b.ty, lanes));
                first.get_or_insert(var);
                self.undeclared.push(var);
            }
        }
        let first = first.ok_or("a register buffer has no elements")?;
        self.storage.insert(buf, Storage::Registers(Registers { first, lanes }));
        Ok(())
    }

    /// Declares the variables of the current block that have no value yet.
    pub(super) fn declare_registers(&mut self) {
        for var in std::mem::take(&mut self.undeclared) {
            let init = zero(self.out.vals[var].ty.elem);
            self.push(k::Stmt::Var { var, init });
        }
    }

    pub(super) fn write_register(&mut self, var: k::ValId, value: k::Opnd) {
        match self.undeclared.iter().position(|v| *v == var) {
            Some(at) => {
                self.undeclared.remove(at);
                self.push(k::Stmt::Var { var, init: value });
            }
            None => self.push(k::Stmt::Set { var, value }),
        }
    }

    /// The variable that holds the elements which the current lanes touch.
    pub(super) fn register(&mut self, buf: l::BufId, registers: Registers, idx: &[l::Ix]) -> Res<k::ValId> {
        let b = self.buf(buf)?;
        let Registers { first, lanes } = registers;
        let apart = || format!("the register buffer {} is not touched vector by vector", b.name);
        let vector = self.vector.filter(|v| v.lanes == lanes).ok_or_else(apart)?;
        let at_first = vector.first.ok_or_else(apart)?;
        let linear = self.linear(buf, idx)?;
        let Some((l::Ix::Const(1), rest)) = linear.linear(vector.axis) else { return Err(apart()) };
        let k::Ix::Const(rest) = self.ix(&rest)? else { return Err(apart()) };
        let element = rest.checked_add(at_first).and_then(|at| u64::try_from(at).ok()).ok_or_else(apart)?;
        let lanes = u64::from(lanes);
        if !element.is_multiple_of(lanes) || element >= b.shape.iter().product() {
            return Err(apart());
        }
        Ok(k::ValId(first.0 + (element / lanes) as u32))
    }

    /// Prepares a variable for a read: declares it if nothing was written to it yet.
    pub(super) fn read_register(&mut self, var: k::ValId) {
        if self.undeclared.contains(&var) {
            let init = zero(self.out.vals[var].ty.elem);
            self.write_register(var, init);
        }
    }

    /// Returns true if statements touch registers declared outside them.
    pub(super) fn touches_registers(&self, body: &[l::Stmt]) -> bool {
        let mut touches = false;
        let register = |buf: l::BufId| {
            self.src.bufs.get(buf).is_some_and(|b| matches!(b.space, l::Space::Register { .. }))
                && self.storage.contains_key(&buf)
        };
        walk::visit(body, &mut |s| {
            walk::parts(s, &mut |part| {
                if let Part::ReadBuf(buf) | Part::WriteBuf(buf) = part {
                    touches |= register(*buf);
                }
            });
        });
        touches
    }

    /// A loop that touches registers: every step of `lanes` iterations (0: one at a time) by itself.
    pub(super) fn written_out(&mut self, f: &l::For, lanes: u32) -> Res<()> {
        let (lo, hi, step) = (self.ix(&f.lo)?, self.ix(&f.hi)?, self.ix(&f.step)?);
        let (k::Ix::Const(lo), k::Ix::Const(hi), k::Ix::Const(1)) = (lo, hi, step) else {
            return Err(self.unplaced(f, "it touches registers, and its bounds are not constants"));
        };
        let step = i64::from(lanes.max(1));
        let count = hi.saturating_sub(lo).max(0);
        if count % step != 0 || count / step > MOST_REGISTERS as i64 {
            return Err(self.unplaced(f, "it touches registers, and has iterations left over or very many"));
        }
        let kept = (self.extracted.clone(), self.splats.clone());
        if lanes > 0 {
            self.splats = Some(FxHashMap::default());
        }
        let mut steps = (lo..hi).step_by(step as usize);
        let done = steps.try_for_each(|first| {
            if lanes > 0 {
                self.vector = Some(Vector { axis: f.axis, lanes, first: Some(first), multiple: 1 });
            }
            self.at_axis(f.axis, k::Ix::Const(first), vec![], |s| s.run(&f.body))
        });
        if lanes > 0 {
            self.vector = None;
        }
        (self.extracted, self.splats) = kept;
        done
    }
}

/// The most vector variables of a buffer, and the most copies of a loop's body.
pub(super) const MOST_REGISTERS: u64 = 256;
