//! How the lanes of a warp meet in the banks of shared memory.
//!
//! In: a placed kernel. Out: for each buffer in shared memory the accesses that threads make, and the passes that they take
//! where the buffer lies in some way, as the simulator counts them (`base/banks.rs`).

use std::collections::BTreeMap;

use crate::base::banks::{swizzled, wavefronts};
use crate::loops::ir::*;
use crate::loops::matrix::Product;
use crate::loops::walk;
use crate::tile::edit::const_trip;

/// An access of a buffer by the lanes of a warp.
pub struct Access {
    idx: Vec<Ix>,
    thread: AxisId,
    /// Elements that a lane moves at once.
    lanes: u64,
    /// Threads that make it.
    threads: i64,
    weight: u64,
}

/// The loops around a statement.
#[derive(Clone, Default)]
struct Around {
    thread: Option<(AxisId, i64)>,
    vector: Option<(AxisId, u64)>,
    weight: u64,
}

/// The accesses of shared buffers that threads make, and how often.
pub fn accesses(p: &Kernel) -> BTreeMap<BufId, Vec<Access>> {
    let mut out = BTreeMap::new();
    gather(p, &p.body, &Around { weight: 1, ..Around::default() }, &mut out);
    out
}

/// The passes that all these accesses take where a buffer lies so, and the fewest that would do.
pub fn passes(accesses: &[Access], lies: &Buf) -> (u64, u64) {
    accesses.iter().map(|a| a.passes(lies)).fold((0, 0), |(n, m), (taken, least)| (n + taken, m + least))
}

/// The rows that the lanes give for the matrix unit: 16 bytes each.
fn fragments(p: &Kernel, product: &Product, around: &Around, threads: i64, out: &mut BTreeMap<BufId, Vec<Access>>) {
    let (zero, two) = (Ix::Const(0), product.cols.is_multiple_of(4));
    let steps = product.terms / u64::from(product.a.of.terms());
    let left = match product.a.by_words() {
        true => product.left_word(&zero, &zero, 0),
        false => product.left(&zero, &zero),
    };
    let right = match product.b.by_words() {
        true => product.right_word(&zero, &zero, 0),
        false => product.right(&zero, &zero, two),
    };
    let loads = [(&product.a, left, product.rows / 2), (&product.b, right, product.cols / if two { 4 } else { 2 })];
    for (side, idx, times) in loads {
        let Some(idx) = idx.filter(|_| !side.registers) else { continue };
        if side.by_words() {
            let weight = around.weight.saturating_mul(4 * times * steps);
            let access = Access { idx, thread: product.thread, lanes: 1, threads, weight };
            out.entry(side.buf).or_default().push(access);
            continue;
        }
        let (lanes, weight) =
            (16 / p.bufs[side.buf].element_bytes().max(1), around.weight.saturating_mul(times * steps));
        let access = Access { idx, thread: product.thread, lanes, threads, weight };
        out.entry(side.buf).or_default().push(access);
    }
}

fn gather(p: &Kernel, body: &[Stmt], around: &Around, out: &mut BTreeMap<BufId, Vec<Access>>) {
    for s in body {
        if let (Stmt::For(f), Some((thread, threads))) = (s, around.thread)
            && f.place.is_product()
            && let Ok(product) = Product::of(p, (thread, threads as u64), f)
        {
            fragments(p, &product, around, threads, out);
            continue;
        }
        if let (Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. }, Some((thread, threads))) =
            (s, around.thread)
            && p.bufs[*buf].space == Space::Shared
        {
            let lanes = around.vector.filter(|(axis, _)| idx.iter().any(|ix| ix.has_axis(*axis))).map_or(1, |v| v.1);
            let access = Access { idx: idx.clone(), thread, lanes, threads, weight: around.weight };
            out.entry(*buf).or_default().push(access);
        }
        let mut inner = around.clone();
        if let Stmt::For(f) = s {
            match f.place {
                Place::Thread => inner.thread = f.hi.as_const().map(|n| (f.axis, n)),
                Place::Vector { lanes } => inner.vector = Some((f.axis, lanes.into())),
                _ => inner.weight = inner.weight.saturating_mul(const_trip(f).unwrap_or(1)),
            }
        }
        for b in walk::bodies(s) {
            gather(p, b, &inner, out);
        }
    }
}

impl Access {
    /// True if a lane moves several elements at once.
    pub fn is_wide(&self) -> bool {
        self.lanes > 1
    }

    /// The passes that a warp's request takes, and the fewest that would do, weighed.
    fn passes(&self, lies: &Buf) -> (u64, u64) {
        let linear = Ix::row_major(&self.idx, &lies.shape);
        let at = |lane: i64| {
            linear.eval(&|leaf| match leaf {
                Ix::Axis(a) if *a == self.thread => lane,
                Ix::Const(c) => *c,
                _ => 0,
            })
        };
        let bytes = lies.element_bytes();
        let place = |lane: usize| swizzled((at(lane as i64).max(0) as u64).saturating_mul(bytes), lies.swizzle);
        let address: [u64; 32] = std::array::from_fn(place);
        let lanes = (1u64 << self.threads.clamp(1, 32)) - 1;
        let (taken, least) = wavefronts(&address, lanes as u32, (self.lanes * bytes) as u32);
        (u64::from(taken) * self.weight, u64::from(least) * self.weight)
    }
}
