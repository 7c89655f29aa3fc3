//! Products of warpgroups, which go on while their warps run.
//!
//! In: `wgmma`, `wgmma commit` and `wgmma wait` of a warp. Out: the array of each of its threads, changed at a moment
//! that the schedule draws between the product and the wait that covers it; the watch is told of the reads until then.
//!
//! The words of a left operand in registers are read when the product ends, so that a thread that changes them before is seen
//! in the sums, too. Each warp computes its own sixteen rows. Products end in the order in which they began, and terms are added one
//! after the other, as in `mma`.

use super::block::{Block, Machine, Warp};
use super::code::{self, Access, Inst, LeftCode, PanelCode};
use super::matrix::{Term, term};
use super::places::{Kind, Places, Stores};
use super::step::At;
use super::watch::{Landing, Touch, Watch, What, Wrong};
use crate::base::banks::swizzled;
use crate::base::launch::Trap;
use crate::kernel::ir::{BufId, Left, Order, Panel};
use crate::loops::matrix::Operand;

/// Rows of a product that a warp has.
const ROWS: u64 = 16;
/// Bytes that a lane reads at once.
const PIECE: u64 = 16;

/// Bytes that the lanes of a warp read at once, and how many lanes do.
struct Pieces<const W: usize> {
    lanes: u32,
    address: [u64; W],
}

/// A product that a warp began.
struct Product<const W: usize> {
    /// Its instruction, and its statement.
    inst: u32,
    statement: u32,
    group: u32,
    acc: BufId,
    /// Where the words of a left operand in registers begin.
    words: Option<Places<W>>,
    /// Bytes of the slots of both panels, and of their first elements in them.
    slots: [u64; 2],
    first: [u64; 2],
    reads: Vec<Pieces<W>>,
    done: bool,
}

/// The products of a warp that are in flight.
pub(super) struct Products<const W: usize> {
    all: Vec<Product<W>>,
    groups: u32,
    fenced: bool,
    /// The last product of the warp, by its statement, and a number that follows from the panels of all of them.
    last: Option<u32>,
    panels: u64,
}

impl<const W: usize> Products<W> {
    pub fn none() -> Products<W> {
        Products { all: vec![], groups: 0, fenced: false, last: None, panels: 0 }
    }

    /// The statements of products that no wait covers.
    pub fn left(&self) -> impl Iterator<Item = u32> {
        self.all.iter().map(|p| p.statement)
    }

    /// The last product of a warp that gave other panels than another one of its group, by its statement.
    pub fn differs(&self, other: &Products<W>) -> Option<u32> {
        (self.panels != other.panels).then_some(self.last.or(other.last)).flatten()
    }

    fn note(&mut self, statement: u32, panels: [u64; 4]) {
        self.last = Some(statement);
        let mix = |all: u64, one: u64| (all ^ one).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.panels = panels.into_iter().fold(mix(self.panels, statement.into()), mix);
    }

    pub fn fence(&mut self) {
        self.fenced = true;
    }
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    pub(super) fn warpgroups(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        here: u32,
        inst: &Inst,
    ) -> Result<(), Trap> {
        match inst {
            Inst::Wgmma { acc, a, b, of } => self.begin_product(block, at, here, acc, (a, b), *of),
            Inst::WgmmaCommit => block.warps[at.warp].products.groups += 1,
            Inst::WgmmaWait { left } => self.end_products(block, at, *left),
            _ => {}
        }
        Ok(())
    }

    /// Reports an access of an array that a product still adds to or reads, or that a load of tensor memory still fills.
    pub(super) fn not_in_flight(&mut self, block: &Block<W, V::Local>, at: At, access: &Access) {
        let Warp { products, loads, .. } = &block.warps[at.warp];
        if products.all.is_empty() && loads.is_empty() {
            return;
        }
        let (code::At::Own { buf, .. } | code::At::Slot { buf, .. }) = &access.at else { return };
        let thread = (at.warp * W) as u32 + at.lanes.trailing_zeros();
        if loads.fill(*buf) {
            self.watch.wrong(at.block, at.statement, thread, Wrong::Loads);
        }
        if products.all.iter().any(|p| p.acc == *buf) {
            self.watch.wrong(at.block, at.statement, thread, Wrong::Sums);
        } else if products.all.iter().any(|p| p.words.as_ref().and_then(Places::buf) == Some(*buf)) {
            self.watch.wrong(at.block, at.statement, thread, Wrong::Words);
        }
    }

    /// After a store: a fence must show the next product the words of its left operand.
    pub(super) fn changed(&self, block: &mut Block<W, V::Local>, at: At, access: &Access) {
        if let code::At::Own { buf, .. } | code::At::Slot { buf, .. } = &access.at
            && self.program.fragments.contains(buf)
        {
            block.warps[at.warp].products.fenced = false;
        }
    }

    fn begin_product(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        here: u32,
        acc: &Access,
        (a, b): (&LeftCode, &PanelCode),
        of: Operand,
    ) {
        let (code::At::Own { buf, len, .. } | code::At::Slot { buf, len, .. }) = &acc.at else { return };
        let (cols, thread) = (2 * len, (at.warp * W) as u32);
        let mut wrong = vec![];
        if !block.warps[at.warp].products.fenced {
            wrong.push(Wrong::Registers);
        }
        let (own, all) = (at.warp % self.program.warps(W), self.program.warps(W));
        if own | 3 >= all {
            wrong.push(Wrong::Tensor(
                "a product needs groups of four warps, and the block's last group is smaller".to_string(),
            ));
        }
        let regs = &block.warps[at.warp].regs;
        let (mut slots, mut first, mut reads) = ([0; 2], [0; 2], vec![]);
        let (left, words) = match a {
            LeftCode::Panel(panel) => (Some((0, panel)), None),
            LeftCode::Words(access) => (None, Some(access)),
        };
        let scratch = self.program.scratch_bytes;
        let words = words.map(|access| Places::<W>::of(access, regs, thread, scratch, self.shared_of(at.warp)));
        if let Some(places) = &words
            && (0..W.min(32)).any(|l| at.lanes >> l & 1 == 1 && !places.inside(l, Left::WORDS))
        {
            let why = "the words of a `wgmma` do not lie in their array".to_string();
            return self.watch.wrong(at.block, at.statement, thread, Wrong::Tensor(why));
        }
        for (n, PanelCode { access, panel }) in left.into_iter().chain([(1, b)]) {
            let places = Places::<W>::of(access, regs, thread, 0, self.shared_of(at.warp));
            let base = places.base[0];
            let (from, last) =
                (places.address(0).wrapping_sub(base), (0..W.min(32)).filter(|l| at.lanes >> l & 1 == 1));
            if last.into_iter().any(|l| places.address(l) != places.address(0)) {
                wrong.push(Wrong::Tensor("lanes of a warp give a `wgmma` different panels".to_string()));
            }
            if !base.is_multiple_of(u64::from(panel.swizzle) * 8) {
                let align = panel.swizzle * 8;
                wrong.push(Wrong::Tensor(format!("the slot of a panel does not begin at a multiple of {align} bytes")));
            }
            (slots[n], first[n]) = (base, from);
            // All four warps read the right panel; where it can be divided, each warp reports a quarter of it.
            let warp = own as u64 % 4;
            let lines = match n {
                0 => warp * ROWS..(warp + 1) * ROWS,
                _ if cols.is_multiple_of(32) => warp * cols / 4..(warp + 1) * cols / 4,
                _ => 0..cols,
            };
            let all: Vec<u64> =
                pieces(panel, lines, of).map(|byte| base + swizzled(from + byte, panel.swizzle)).collect();
            let end = all.iter().max().map_or(0, |byte| byte + PIECE);
            if let code::At::Slot { offset, len, elem, .. } = &access.at
                && end > self.shared_of(at.warp) + offset + len * elem.bytes()
            {
                wrong.push(Wrong::Tensor("a panel of a `wgmma` does not lie in its slot".to_string()));
                return wrong.into_iter().for_each(|w| self.watch.wrong(at.block, at.statement, thread, w));
            }
            reads.extend(all.chunks(W).map(|some| Pieces {
                lanes: ((1u64 << some.len()) - 1) as u32,
                address: std::array::from_fn(|l| some.get(l).copied().unwrap_or(0)),
            }));
        }
        wrong.into_iter().for_each(|w| self.watch.wrong(at.block, at.statement, thread, w));
        if self.watch.wants_touches() {
            for Pieces { lanes, address } in &reads {
                let touch = Touch {
                    statement: at.statement,
                    warp: at.warp as u32,
                    lanes: *lanes,
                    wrote: 0,
                    shared: true,
                    what: What::Read,
                    order: Order::Weak,
                    lasts: true,
                    bytes: PIECE as u32,
                    elem: of.bytes(),
                    address,
                    upper: None,
                };
                self.watch.touched(&mut block.local, &touch);
            }
        }
        let products = &mut block.warps[at.warp].products;
        products.note(at.statement, [slots[0], first[0], slots[1], first[1]]);
        let (group, statement) = (products.groups, at.statement);
        let mut made = Product { inst: here, statement, group, acc: *buf, words, slots, first, reads, done: false };
        if self.schedule.lands_at_once() && products.all.iter().all(|p| p.done) {
            self.compute(block, at, &made);
            made.done = true;
        }
        block.warps[at.warp].products.all.push(made);
    }

    fn end_products(&mut self, block: &mut Block<W, V::Local>, at: At, left: u32) {
        let Products { all, groups, .. } = &mut block.warps[at.warp].products;
        let until = groups.saturating_sub(left);
        let count = all.iter().take_while(|p| p.group < until).count();
        let ended: Vec<Product<W>> = all.drain(..count).collect();
        for product in ended {
            if !product.done {
                self.compute(block, at, &product);
            }
            let (statement, warp) = (product.statement, at.warp as u32);
            for Pieces { lanes, address } in &product.reads {
                let bytes = PIECE as u32;
                let landing = Landing { statement, warp, lanes: *lanes, read: 0, bytes, to: address, from: address };
                self.watch.landed(&mut block.local, &landing);
            }
        }
        // A fence must show the next product the registers that are written from here on.
        block.warps[at.warp].products.fenced = false;
    }

    /// Adds a warp's rows of a product to the arrays of its threads.
    fn compute(&mut self, block: &mut Block<W, V::Local>, at: At, product: &Product<W>) {
        let Some(Inst::Wgmma { acc, a, b, of }) = self.program.code.get(product.inst as usize) else { return };
        let (regs, scratch) = (&block.warps[at.warp].regs, self.program.scratch_bytes);
        let places = Places::<W>::of(acc, regs, (at.warp * W) as u32, scratch, self.shared_of(at.warp));
        let Block { warps, scratch, shared, .. } = &mut *block;
        let bytes: &[u8] = shared;
        let elements = |n: usize, panel: &Panel, lines: std::ops::Range<u64>| -> Vec<Vec<Term>> {
            let read = |line: u64, k: u64| {
                let byte = product.first[n] + panel.byte(line, k, of.bytes().into());
                let from = (product.slots[n] + swizzled(byte, panel.swizzle)) as usize;
                let bits = bytes.get(from..from + of.bytes() as usize).unwrap_or_default();
                term(bits.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), *of)
            };
            lines.map(|line| (0..u64::from(of.terms())).map(|k| read(line, k)).collect()).collect()
        };
        let own = (at.warp % self.program.warps(W)) as u64;
        let (first, cols) = (own % 4 * ROWS, 2 * u64::from(acc.lanes));
        let right = elements(1, &b.panel, 0..cols);
        let left = match a {
            LeftCode::Panel(a) => elements(0, &a.panel, first..first + ROWS),
            LeftCode::Words(_) => vec![],
        };
        let mut stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        let left = product.words.as_ref().map_or(left, |words| fragment(&stores, words, *of));
        let of_row = acc.lanes / 2;
        for l in (0..W.min(32)).filter(|l| at.lanes >> l & 1 == 1) {
            for n in 0..acc.lanes {
                let (half, own) = ((n / of_row) as usize, n % of_row);
                let column = (own / 2 * 8) as usize + l % 4 * 2 + (own % 2) as usize;
                let mut sum = stores.read(&places, l, n).unwrap_or(0);
                for (x, y) in left[half * 8 + l / 4].iter().zip(&right[column]) {
                    sum = x.times(*y, sum);
                }
                let _ = stores.write(&places, l, n, sum);
            }
        }
        debug_assert!(matches!(places.kind, Kind::Own | Kind::Scratch));
    }
}

/// The sixteen rows of a warp whose lanes have their words: of each row and of the one eight below, the left half of the terms and
/// then the right one.
fn fragment<const W: usize>(stores: &Stores<'_, W>, places: &Places<W>, of: Operand) -> Vec<Vec<Term>> {
    let each = 4 / of.bytes() as usize;
    let one = |row: usize, k: usize| {
        let (half, k) = (k / (4 * each), k % (4 * each));
        let (lane, word) = (row % 8 * 4 + k / each, 2 * half + row / 8);
        let word = stores.read(places, lane, word as u32).unwrap_or(0);
        let bits = 8 * of.bytes();
        term(word >> (k % each * bits as usize) & (u64::MAX >> (64 - bits)), of)
    };
    (0..ROWS as usize).map(|row| (0..of.terms() as usize).map(|k| one(row, k)).collect()).collect()
}

/// Where the pieces of a panel's lines lie, as if none were exchanged: eight that follow each other lie in eight places of
/// their rows once they are.
fn pieces(panel: &Panel, lines: std::ops::Range<u64>, of: Operand) -> impl Iterator<Item = u64> {
    let (bytes, terms) = (u64::from(of.bytes()), u64::from(of.terms()));
    let (each, count) = (PIECE / bytes, lines.end - lines.start);
    let number = count * terms / each;
    (0..number).map(move |n| match panel.transposed {
        false => panel.byte(lines.start + n % count, n / count * each, bytes),
        true => panel.byte(lines.start + n / terms * each, n % terms, bytes),
    })
}
