//! Products of warpgroups.
//!
//! ```text
//! for r in 0..2: free warpgroup                        fence registers
//!   for c in 0..32: free warpgroup                     for k in 0..4 {
//!     for k in 0..64: reduce warpgroup         -->       wgmma f16 acc add a_s[..] swizzle 128 .., b_s[..] trans ..
//!       x: f16 = a_s[<row>, k]                         }
//!       ...                                            wgmma commit
//!       acc[t, r, c] = ...                             wgmma wait 0 acc
//! ```
//! A left operand that is no such panel comes from words in registers: those that lanes have of sums, or read by `ldmatrix`. All
//! of them are there before the fence, and stay until the wait.
//!
//! After the wait the panels have been read: the barrier before they are filled again is the same as for any other
//! reader. In a pipeline whose iterations overlap, the wait for a product stands at the end of the next iteration
//! (`wgmma wait 1`), and the wait for the last product after the loop; where they do more than multiply, an iteration's last
//! product begins in the next one, behind that one's first product ([`crate::loops::overlap`]).

use std::collections::BTreeSet;

use super::{Lower, Res, Storage};
use crate::index::{Facts, simplify};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::matrix::{Product, Side};
use crate::loops::overlap::Parts;
use crate::loops::panels::{How, Lies, ROWS};
use crate::loops::walk;
use crate::num::DType;

/// The part of a product that is built where the loops have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Whole,
    /// The words of its left operand.
    Words,
    /// All but these words; and the fence, where the one before another product shows the words, too.
    Rest {
        shown: bool,
    },
}

/// The products that still run behind one that is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flight {
    part: Part,
    /// How many may run, the last one included. `None`: all, and the wait stands elsewhere.
    left: Option<u32>,
    /// The sums of the last one that runs.
    sums: Option<k::BufId>,
}

impl Flight {
    pub(super) const NONE: Flight = Flight { part: Part::Whole, left: Some(0), sums: None };
    /// The product of the iteration: the panels that the one before has read may be filled again.
    pub(super) const ONE: Flight = Flight { left: Some(1), ..Flight::NONE };
    /// The products of all iterations: no panel is filled again.
    pub(super) const ALL: Flight = Flight { left: None, ..Flight::NONE };
}

/// Steps of the sum that are written out.
const MOST_STEPS: u64 = 8;

impl Lower<'_> {
    pub(super) fn product_of_warpgroups(&mut self, f: &l::For) -> Res<()> {
        let thread = self.axes.iter().find(|(_, ix)| **ix == k::Ix::Thread).map(|(axis, _)| *axis);
        let thread = thread.ok_or_else(|| self.unplaced(f, "only threads compute on the matrix unit"))?;
        let threads = u64::from(self.active);
        let p = Product::of(self.src, (thread, threads), f).map_err(|why| self.unplaced(f, why))?;
        let [left, right] = p.lies(self.src, threads, ROWS).map_err(|why| self.unplaced(f, why))?;
        let Storage::Slot(acc) = self.storage(p.acc)? else {
            return Err(self.unplaced(f, "its sums are in no array"));
        };
        if self.out.slots[acc].len != p.rows * p.cols {
            return Err(self.unplaced(f, "its sums are a part of an array"));
        }
        let steps = p.terms / u64::from(p.a.of.terms());
        let mut facts = Facts::new();
        for (axis, n) in [(thread, threads), (p.axes[2], steps)] {
            facts.set_axis(axis, &l::Ix::Const(0), &l::Ix::Const(n as i64));
        }
        let step = l::Ix::Axis(p.axes[2]);
        let words = match left {
            How::Panel(_) => None,
            How::Words if matches!(self.flight.part, Part::Rest { .. }) => self.fragments.get(&p.axes[0]).copied(),
            How::Words => {
                let pair = l::Ix::Const(0);
                let reads = p.left_reads(&pair, &step).ok_or("a product's rows do not follow from lanes")?;
                let made = self.fragments.get(&p.axes[0]).copied();
                let words = made.unwrap_or_else(|| self.words("a_f", steps * u64::from(k::Left::WORDS)));
                self.fragments.insert(p.axes[0], words);
                self.times(p.axes[2], steps, steps as u32, |s, step| {
                    let first = k::Ix::mul(step.clone(), k::Ix::Const(k::Left::WORDS.into()));
                    s.left_words(&p, &reads, &facts, [&k::Ix::Const(0), &step], (words, &first))
                })?;
                Some(words)
            }
        };
        if self.flight.part == Part::Words {
            return Ok(());
        }
        if self.flight.part != (Part::Rest { shown: true }) {
            self.push(k::Stmt::Fence { kind: k::Fence::Registers });
        }
        // Registers have no addresses.
        let unroll = if steps <= MOST_STEPS || words.is_some() { steps as u32 } else { 0 };
        self.times(p.axes[2], steps, unroll, |s, at| {
            let a = match (left, words) {
                (How::Panel(lies), _) => k::Left::Panel(s.panel(&p.a, &p.first(&p.a, &step), &facts, lies)?),
                (How::Words, Some(buf)) => {
                    let index = k::Ix::mul(at, k::Ix::Const(k::Left::WORDS.into()));
                    k::Left::Words(k::Address::Slot { buf, index })
                }
                (How::Words, None) => return Err("a product has no left operand".to_string()),
            };
            let How::Panel(lies) = right else { return Err("a product has no right operand".to_string()) };
            let b = s.panel(&p.b, &p.first(&p.b, &step), &facts, lies)?;
            s.push(k::Stmt::Wgmma { acc, a, b, of: p.a.of });
            Ok(())
        })?;
        self.push(k::Stmt::WgmmaCommit);
        if let Some(left) = self.flight.left {
            self.push(k::Stmt::WgmmaWait { left, acc, behind: vec![] });
        }
        if self.flight.left != Some(0) {
            self.flight.sums = Some(acc);
        }
        Ok(())
    }

    /// Builds something whose products go on like this; gives the sums of the last one that still runs.
    fn with_flight(&mut self, flight: Flight, body: impl FnOnce(&mut Self) -> Res<()>) -> Res<Option<k::BufId>> {
        let before = std::mem::replace(&mut self.flight, flight);
        let done = body(self);
        let flight = std::mem::replace(&mut self.flight, before);
        done.map(|()| flight.sums)
    }

    /// Builds the iterations of a loop with `body`, and after the loop the wait for the products that are still in
    /// flight.
    pub(super) fn in_flight(&mut self, flight: Flight, body: impl FnOnce(&mut Self) -> Res<()>) -> Res<()> {
        if let Some(acc) = self.with_flight(flight, body)? {
            self.push(k::Stmt::WgmmaWait { left: 0, acc, behind: vec![] });
        }
        Ok(())
    }

    /// Builds a part of a product, or statements up to one, and returns its sums: it is in flight then.
    fn part_of_product(&mut self, part: Part, body: &[l::Stmt]) -> Res<k::BufId> {
        let sums = self.with_flight(Flight { part, ..Flight::ALL }, |s| s.run(body))?;
        sums.ok_or_else(|| "a product that goes on has no sums".to_string())
    }

    /// An iteration of a pipeline whose last product goes on: what the threads do at `at`, and, where there is an iteration before
    /// it, the last product of that one. `then` stands before the wait for that.
    pub(super) fn overlapped(
        &mut self,
        f: &l::For,
        parts: &Parts<'_>,
        at: &k::Ix,
        before: Option<&k::Ix>,
        then: impl FnOnce(&mut Self) -> Res<()>,
    ) -> Res<()> {
        let here = |s: &mut Self, body: &[l::Stmt]| s.at_axis(f.axis, at.clone(), vec![], |s| s.run(body));
        let scores = self.at_axis(f.axis, at.clone(), vec![], |s| s.part_of_product(Part::Whole, parts.first))?;
        let sums = before.map(|before| self.last_product(f, parts, before, true)).transpose()?;
        self.push(k::Stmt::WgmmaWait { left: u32::from(sums.is_some()), acc: scores, behind: vec![] });
        here(self, parts.between)?;
        then(self)?;
        if let Some(acc) = sums {
            let behind = self.computed(parts)?;
            self.push(k::Stmt::WgmmaWait { left: 0, acc, behind });
        }
        here(self, parts.after)?;
        here(self, parts.rest)?;
        self.with_flight(Flight { part: Part::Words, ..Flight::ALL }, |s| here(s, parts.last)).map(drop)
    }

    /// The arrays of words that threads compute while the last product goes on.
    fn computed(&self, parts: &Parts<'_>) -> Res<Vec<k::BufId>> {
        let made = walk::refs(parts.between).bufs_written;
        let used: BTreeSet<l::BufId> =
            [parts.after, parts.rest].into_iter().flat_map(|part| walk::refs(part).bufs_read).collect();
        let mut out = vec![];
        for buf in made.intersection(&used) {
            if let Storage::Slot(slot) = self.storage(*buf)?
                && matches!(self.out.slots[slot].elem, k::Elem::Num(DType::F32 | DType::I32))
                && !self.out.slots[slot].is_shared()
            {
                out.push(slot);
            }
        }
        Ok(out)
    }

    /// Begins the last product of an iteration; `shown` where the fence of a product right before shows its words.
    pub(super) fn last_product(&mut self, f: &l::For, parts: &Parts<'_>, at: &k::Ix, shown: bool) -> Res<k::BufId> {
        self.at_axis(f.axis, at.clone(), vec![], |s| s.part_of_product(Part::Rest { shown }, parts.last))
    }

    fn panel(&mut self, side: &Side, idx: &[l::Ix], facts: &Facts, lies: Lies) -> Res<k::Panel> {
        let buf = self.shared_operand(side)?;
        let linear = simplify(&self.linear(side.buf, idx)?, facts);
        let place = k::Address::Slot { buf, index: self.ix(&linear)? };
        let Lies { transposed, row, lead, stride } = lies;
        Ok(k::Panel { place, transposed, swizzle: row as u32, lead: lead as u32, stride: stride as u32 })
    }
}
