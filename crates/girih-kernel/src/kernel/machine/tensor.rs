//! Boxes of tensors that TMA copies to shared memory.
//!
//! In: a copy that a thread begins. Out: the bytes of shared memory, at a moment that the schedule draws, and the
//! mbarrier that counts them. A late copy lands when no warp can go on without it, or when the turn of the block ends.
//!
//! ```text
//! tensor m: f32[60, 30] of a strides (32) box [64, 32]
//! copy tensor s[0] = m[0, 0] on full[0]     8192 bytes count, of which 60 rows of 30 are of the tensor, the others 0
//! ```

use super::block::{Block, Machine};
use super::code::Access;
use super::step::At;
use super::watch::{Boxed, Run, Watch, What, Wrong};
use crate::base::launch::Trap;
use crate::kernel::ir::Tensor;
use crate::loops::eval::expr::{Expr, Slot};

/// A tensor, and the expressions of its numbers.
pub(in crate::kernel) struct TensorCode {
    pub tensor: Tensor,
    pub base: Slot,
    pub dims: Vec<Expr>,
    pub strides: Vec<Expr>,
}

/// The values that the lanes of a warp give for their boxes.
pub(super) struct Given<const W: usize> {
    bases: [u64; W],
    dims: Vec<[i64; W]>,
    strides: Vec<[i64; W]>,
    from: Vec<[i64; W]>,
}

impl<const W: usize> Given<W> {
    /// `from` is where the boxes begin in the tensor.
    pub fn of(code: &TensorCode, regs: &[[u64; W]], from: &[Expr]) -> Given<W> {
        let of = |all: &[Expr]| all.iter().map(|e| e.lanes(regs)).collect();
        Given { bases: regs[code.base as usize], dims: of(&code.dims), strides: of(&code.strides), from: of(from) }
    }
}

/// A copy under way.
pub(super) struct Flight {
    at: At,
    lane: usize,
    tensor: usize,
    mbarrier: u32,
    to: u64,
    runs: Vec<Run>,
    /// Another block of the cluster gets the bytes that were read for the first.
    again: bool,
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Each lane begins to copy a box, perhaps to `all` blocks of the cluster.
    pub(super) fn copy_box(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        (to, on): (&Access, (&Access, u32)),
        (tensor, from): (usize, &[Expr]),
        all: bool,
    ) -> Result<(), Trap> {
        let Some(code) = self.program.tensors.get(tensor) else { return Ok(()) };
        let numbers = self.mbarriers(block, &mut at, on)?;
        let target = self.places(block, &mut at, to, What::Write)?;
        let given = Given::of(code, &block.warps[at.warp].regs, from);
        for lane in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let (runs, _) = self.runs(at, lane, code, &given, target.address(lane), What::Read)?;
            let own = self.member(at.warp) as u32;
            let members = if all { 0..self.program.cluster } else { own..own + 1 };
            for (read, member) in members.enumerate() {
                let mbarrier = numbers[lane] % self.program.mbarriers.max(1) + member * self.program.mbarriers;
                let to = target.address(lane) - self.shared_of(at.warp) + u64::from(member) * self.program.shared_bytes;
                if !self.usable(block, at, lane, mbarrier) {
                    continue;
                }
                if !block.mbarriers[mbarrier as usize].fenced {
                    self.wrong(at, lane, Wrong::Unfenced { number: mbarrier });
                }
                block.mbarriers[mbarrier as usize].brings(code.tensor.bytes(), at, lane);
                let flight = Flight { at, lane, tensor, mbarrier, to, runs: runs.clone(), again: read > 0 };
                self.watch.boxed(&mut block.local, &boxed::<W>(&flight, &code.tensor), None);
                if self.schedule.lands_at_once() {
                    self.land_box(block, &flight);
                } else {
                    block.boxes.push(flight);
                }
            }
        }
        Ok(())
    }

    /// The bytes of a lane's box in global memory, and whether all of them exist; errors are reported.
    pub(super) fn runs(
        &mut self,
        at: At,
        lane: usize,
        code: &TensorCode,
        given: &Given<W>,
        shared: u64,
        what: What,
    ) -> Result<(Vec<Run>, bool), Trap> {
        let one = |all: &[[i64; W]]| -> Vec<i64> { all.iter().map(|e| e[lane]).collect() };
        let (base, strides) = (given.bases[lane], one(&given.strides));
        if let Some(wrong) = unfit(&code.tensor, base, &strides, shared) {
            self.wrong(at, lane, Wrong::Tensor(wrong));
        }
        let runs = runs(&code.tensor, base, &one(&given.dims), &strides, &one(&given.from));
        let mut buffer = vec![];
        let fault = runs.iter().find_map(|run| {
            buffer.resize(run.bytes as usize, 0);
            self.memory.read(run.from, &mut buffer).err()
        });
        let whole = fault.is_none();
        if let Some(fault) = fault {
            self.refused(&mut At { lanes: 1 << lane, ..at }, &[(lane, fault)], what)?;
        }
        Ok((runs, whole))
    }

    /// Lands one of the boxes under way, if there is one.
    pub(super) fn land_late(&mut self, block: &mut Block<W, V::Local>) -> bool {
        if block.boxes.is_empty() {
            return false;
        }
        let last = block.boxes.len() - 1;
        let flight = block.boxes.remove(if self.schedule.last_lane_first() { last } else { 0 });
        self.land_box(block, &flight);
        true
    }

    fn land_box(&mut self, block: &mut Block<W, V::Local>, flight: &Flight) {
        let Some(TensorCode { tensor, .. }) = self.program.tensors.get(flight.tensor) else { return };
        let (to, bytes) = (flight.to as usize, tensor.bytes());
        if let Some(all) = block.shared.get_mut(to..to.saturating_add(bytes as usize)) {
            all.fill(0);
            let mut buffer = vec![];
            for run in &flight.runs {
                buffer.resize(run.bytes as usize, 0);
                if self.memory.read(run.from, &mut buffer).is_ok() {
                    let place = |byte: usize| tensor.swizzled(run.to + byte as u64) as usize;
                    buffer.iter().enumerate().for_each(|(n, b)| {
                        all.get_mut(place(n)).into_iter().for_each(|to| *to = *b);
                    });
                }
            }
        }
        let phase = block.mbarriers.get(flight.mbarrier as usize).map_or(0, |m| m.phase);
        self.watch.boxed(&mut block.local, &boxed::<W>(flight, tensor), Some(phase));
        self.brought(block, flight.at, flight.lane, flight.mbarrier, bytes);
    }
}

fn boxed<'a, const W: usize>(flight: &'a Flight, tensor: &Tensor) -> Boxed<'a> {
    Boxed {
        statement: flight.at.statement,
        thread: (flight.at.warp * W + flight.lane) as u32,
        mbarrier: Some(flight.mbarrier),
        at: flight.to,
        bytes: tensor.bytes(),
        elem: tensor.elem.bytes() as u32,
        runs: if flight.again { &[] } else { &flight.runs },
    }
}

/// The reason why TMA refuses a tensor or a place.
fn unfit(tensor: &Tensor, base: u64, strides: &[i64], to: u64) -> Option<String> {
    let (name, align) = (&tensor.name, tensor.align());
    if !base.is_multiple_of(16) {
        return Some(format!(
            "the array of the tensor `{name}` begins at {base:#x}, which is not a multiple of 16 bytes"
        ));
    }
    let bytes = strides.iter().map(|s| i128::from(*s) * i128::from(tensor.elem.bytes()));
    if let Some(stride) = bytes.into_iter().find(|b| *b <= 0 || b % 16 != 0) {
        return Some(format!(
            "a stride of the tensor `{name}` is {stride} bytes, which is not a positive multiple of 16"
        ));
    }
    (!to.is_multiple_of(align)).then(|| {
        format!("a box of the tensor `{name}` lies at byte {to} of shared memory, which is not a multiple of {align}")
    })
}

/// The part of a box that lies inside the tensor, row by row.
fn runs(tensor: &Tensor, base: u64, dims: &[i64], strides: &[i64], from: &[i64]) -> Vec<Run> {
    let (size, rank) = (tensor.elem.bytes(), tensor.extents.len());
    let (Some(inner), true) = (rank.checked_sub(1), dims.len() == rank && from.len() == rank) else { return vec![] };
    let row = i64::from(tensor.extents[inner]);
    let (first, end) = (from[inner].max(0), from[inner].saturating_add(row).min(dims[inner]));
    let rows = tensor.count() / tensor.extents[inner].max(1) as u64;
    let mut out = vec![];
    for number in (0..rows).filter(|_| first < end) {
        let (mut rest, mut at, mut inside) = (number, i128::from(first), true);
        for d in (0..inner).rev() {
            let extent = u64::from(tensor.extents[d]);
            let place = from[d].saturating_add((rest % extent) as i64);
            rest /= extent;
            inside &= (0..dims[d]).contains(&place);
            at += i128::from(place) * i128::from(strides.get(d).copied().unwrap_or(0));
        }
        if inside {
            let to = (number * row as u64 + (first - from[inner]) as u64) * size;
            let from = base.wrapping_add((at as u64).wrapping_mul(size));
            out.push(Run { to, from, bytes: (end - first) as u64 * size });
        }
    }
    out
}
