//! Products with sums in tensor memory.
//!
//! In: the instructions of `tcgen05`, with the descriptors that the emitted source has. Out: the words of tensor memory and the arrays
//! of threads. A product may change its sums at any time until it has ended; the simulator draws that time, and tells the watch of each
//! access. Descriptors are all that the machine knows of the operands: their types, extents and places.
//!
//! ```text
//! tcgen05 mma f16 to sums = ..       columns `sums & 65535` on are changed now ...
//! tcgen05 commit done[0]            ... or when this commit arrives, after all products of the thread before it
//! tcgen05 load acc from sums + ..    lanes `(sums + ..) >> 16` on, which are those of the warp
//! tcgen05 wait acc                  the array may be used from here on
//! ```
//! Terms are added one after the other, as in `mma`. A block gets the last columns of tensor memory, not the first ones: an address
//! that is taken for 0 is outside.

use super::block::{Block, Machine};
use super::code::{Access, Inst};
use super::matrix::{Term, term};
use super::places::{Places, Stores};
use super::step::At;
use super::watch::{Columns, InTensor, Left, Watch, What, Wrong};
use crate::base::banks::swizzled;
use crate::base::launch::Trap;
use crate::kernel::ir::BufId;
use crate::kernel::tcgen05::{COLUMNS, Instruction, LANES, LANES_OF_WARP, Matrix, MmaKind};
use crate::loops::eval::expr::{Expr, MaskCode, Slot};
use crate::loops::panels::Lies;

/// Bytes that the matrix unit reads at once.
const PIECE: u64 = 16;

/// An operand's place and number.
pub(in crate::kernel) struct DescribedCode {
    pub access: Access,
    pub number: u64,
}

/// An instruction that multiplies.
pub(in crate::kernel) struct MmaCode {
    pub kind: MmaKind,
    pub sums: Expr,
    pub a: DescribedCode,
    pub b: DescribedCode,
    pub instruction: u32,
    pub add: MaskCode,
}

/// Where the bytes of an operand's elements lie in shared memory.
#[derive(Clone, Copy)]
struct Panel {
    /// Where the shared memory of the block begins, and the address in the descriptor.
    shared: u64,
    start: u64,
    lies: Lies,
    bytes: u64,
}

impl Panel {
    /// The byte of an element; addresses have 18 bits, and pieces are exchanged by their address.
    fn byte(&self, line: u64, term: u64) -> u64 {
        let at = self.start + self.lies.byte(line, term, self.bytes);
        self.shared + swizzled(at, self.lies.row as u32)
    }
}

/// A product that a thread began.
struct Flight {
    at: At,
    lane: usize,
    made: Instruction,
    column: u32,
    panels: [Panel; 2],
    add: bool,
    done: bool,
}

/// A commit that has not arrived: what a thread began before it.
struct Commit {
    at: At,
    lane: usize,
    number: u32,
    products: Vec<Flight>,
}

/// The tensor memory of a block.
pub(super) struct TensorMemory {
    words: Vec<u32>,
    /// The first columns and the numbers of those that are allocated, with the place of the allocation.
    allocated: Vec<(u32, u32, At)>,
    relinquished: bool,
    /// Products that no commit has followed yet, in order.
    begun: Vec<Flight>,
    commits: Vec<Commit>,
}

impl TensorMemory {
    pub fn none() -> TensorMemory {
        TensorMemory { words: vec![], allocated: vec![], relinquished: false, begun: vec![], commits: vec![] }
    }

    fn has(&self, column: u32, count: u32) -> bool {
        let holds = |(first, columns, _): &(u32, u32, At)| {
            column >= *first && column.saturating_add(count) <= first.saturating_add(*columns)
        };
        self.allocated.iter().any(holds)
    }

    fn word(&mut self, lane: u64, column: u64) -> Option<&mut u32> {
        self.words.get_mut((lane * u64::from(COLUMNS) + column) as usize)
    }
}

/// Loads into arrays of a warp that no wait has followed: the instruction, and the address of each lane.
pub(super) struct Loads<const W: usize>(Vec<(u32, BufId, At, [i64; W])>);

impl<const W: usize> Loads<W> {
    pub fn none() -> Loads<W> {
        Loads(vec![])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn fill(&self, buf: BufId) -> bool {
        self.0.iter().any(|(_, own, ..)| *own == buf)
    }
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Runs an instruction of a whole warp.
    pub(super) fn of_tensor_memory(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        here: u32,
        inst: &Inst,
    ) -> Result<(), Trap> {
        let regs = &block.warps[at.warp].regs;
        match inst {
            Inst::Tcgen05Alloc { dst, columns } => self.allocate(block, at, *dst, *columns),
            Inst::Tcgen05Relinquish => self.tensor_of(block, at).relinquished = true,
            Inst::Tcgen05Dealloc { at: address, columns } => {
                let address = address.lanes(regs);
                self.deallocate(block, at, address, *columns);
            }
            Inst::Tcgen05Load { acc, at: address } => {
                let address = address.lanes(regs);
                self.begin_load(block, at, here, acc, address)?;
            }
            Inst::Tcgen05Wait { acc } => self.end_loads(block, at, *acc),
            _ => {}
        }
        Ok(())
    }

    fn tensor_of<'b>(&self, block: &'b mut Block<W, V::Local>, at: At) -> &'b mut TensorMemory {
        let member = self.member(at.warp);
        &mut block.tensor[member]
    }

    fn wrong_in_tensor(&mut self, at: At, lane: usize, what: &'static str) {
        self.wrong(at, lane, Wrong::TensorMemory(what));
    }

    fn allocate(&mut self, block: &mut Block<W, V::Local>, at: At, dst: Slot, columns: u32) {
        let memory = self.tensor_of(block, at);
        let (relinquished, taken) = (memory.relinquished, memory.allocated.iter().map(|(_, n, _)| n).sum::<u32>());
        if memory.words.is_empty() {
            memory.words = vec![0xa5a5_a5a5; (LANES * COLUMNS) as usize];
        }
        let first = COLUMNS.saturating_sub(taken.saturating_add(columns));
        memory.allocated.push((first, columns, at));
        let to = &mut block.warps[at.warp].regs[dst as usize];
        (0..W).filter(|l| at.lanes >> l & 1 == 1).for_each(|l| to[l] = first.into());
        self.tell(block, at, 0, (first, columns), 0..4, InTensor::Takes);
        if relinquished {
            self.wrong_in_tensor(at, 0, "a block allocates columns after it has relinquished the right to");
        }
        if taken.saturating_add(columns) > COLUMNS {
            self.wrong_in_tensor(at, 0, "a block allocates more columns than a multiprocessor has: it waits for ever");
        }
    }

    fn deallocate(&mut self, block: &mut Block<W, V::Local>, at: At, address: [i64; W], columns: u32) {
        let lane = at.lanes.trailing_zeros() as usize % W;
        let first = address[lane];
        let memory = self.tensor_of(block, at);
        let found = memory.allocated.iter().position(|(own, n, _)| (i64::from(*own), *n) == (first, columns));
        let busy = !memory.begun.is_empty() || !memory.commits.is_empty();
        match found {
            Some(found) => _ = memory.allocated.remove(found),
            None => self.wrong_in_tensor(at, lane, "columns are given back that were not allocated together"),
        }
        if busy {
            self.wrong_in_tensor(at, lane, "columns are given back while a product may still be adding to them");
        }
        if found.is_some() {
            self.tell(block, at, lane, (first as u32, columns), 0..4, InTensor::Frees);
        }
    }

    fn tell(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        lane: usize,
        (first, count): (u32, u32),
        quarters: std::ops::Range<u32>,
        what: InTensor<'_>,
    ) {
        let member = self.member(at.warp) as u32;
        let thread = (at.warp * W + lane) as u32;
        let columns =
            Columns { statement: at.statement, block: at.block, thread, member, first, count, quarters, what };
        self.watch.in_tensor(&mut block.local, columns);
    }

    /// Each lane begins a product.
    pub(super) fn multiply_in_tensor(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        code: &MmaCode,
    ) -> Result<(), Trap> {
        let made = Instruction::decode(code.kind, code.instruction);
        let lies = [&code.a, &code.b].map(|of| Matrix::decode(of.number));
        let (Ok(made), [Ok(left), Ok(right)]) = (made, lies) else {
            self.wrong_in_tensor(
                at,
                at.lanes.trailing_zeros() as usize % W,
                "an instruction has numbers that say nothing",
            );
            return Ok(());
        };
        let regs = &block.warps[at.warp].regs;
        let (sums, add) = (code.sums.lanes(regs), code.add.lanes(regs));
        let places = [
            self.places(block, &mut at, &code.a.access, What::Read)?,
            self.places(block, &mut at, &code.b.access, What::Read)?,
        ];
        let shared = self.shared_of(at.warp);
        for lane in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let panel = |n: usize, matrix: Matrix| {
                let address = places[n].address(lane) - shared;
                let start = (address & 0x3ffff) >> 4 << 4;
                let Matrix { swizzle, lead, stride } = matrix;
                let transposed = made.transposed[n];
                let lies = Lies { transposed, row: swizzle.into(), lead: lead.into(), stride: stride.into() };
                Panel { shared, start, lies, bytes: code.kind.bytes().into() }
            };
            let panels = [panel(0, left), panel(1, right)];
            let (column, row) = ((sums[lane] & 0xffff) as u32, sums[lane] >> 16);
            if row != 0 || !self.tensor_of(block, at).has(column, made.cols) {
                self.wrong_in_tensor(at, lane, "a product goes to lanes or columns that the block has not allocated");
                continue;
            }
            let slots = [&code.a, &code.b].map(|of| &of.access);
            let bytes = read_by(&panels, &made);
            if outside(&bytes, &panels, slots) {
                self.wrong_in_tensor(at, lane, "an operand of a `tcgen05 mma` does not lie in its slot");
                continue;
            }
            let elem = code.kind.bytes();
            let adds = InTensor::Adds { bytes: [&bytes[0], &bytes[1]], piece: PIECE, elem };
            self.tell(block, at, lane, (column, made.cols), 0..4, adds);
            let mut flight = Flight { at, lane, made, column, panels, add: add >> lane & 1 == 1, done: false };
            let thread = at.warp * W + lane;
            let memory = self.tensor_of(block, at);
            let later = |f: &Flight| f.at.warp * W + f.lane == thread && !f.done;
            let waits = memory.begun.iter().any(later) || memory.commits.iter().flat_map(|c| &c.products).any(later);
            if self.schedule.lands_at_once() && !waits {
                self.compute_in_tensor(block, &mut flight);
            }
            self.tensor_of(block, at).begun.push(flight);
        }
        Ok(())
    }

    /// Each lane lets an mbarrier count its products.
    pub(super) fn commit_in_tensor(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        on: (&Access, u32),
    ) -> Result<(), Trap> {
        let numbers = self.mbarriers(block, &mut at, on)?;
        for lane in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let number = numbers[lane];
            if !self.usable(block, at, lane, number) {
                continue;
            }
            if !block.mbarriers[number as usize].fenced {
                self.wrong(at, lane, Wrong::Unfenced { number });
            }
            let memory = self.tensor_of(block, at);
            let own = |f: &Flight| f.at.warp == at.warp && f.lane == lane;
            let (products, others) = std::mem::take(&mut memory.begun).into_iter().partition(own);
            memory.begun = others;
            let earlier = memory.commits.iter().any(|c| c.at.warp == at.warp && c.lane == lane);
            let commit = Commit { at, lane, number, products };
            self.tell(block, at, lane, (0, 0), 0..0, InTensor::Commits);
            if self.schedule.lands_at_once() && !earlier {
                self.arrive_products(block, commit);
            } else {
                self.tensor_of(block, at).commits.push(commit);
            }
        }
        Ok(())
    }

    /// Lets one of the commits under way arrive, if there is one.
    pub(super) fn commit_late(&mut self, block: &mut Block<W, V::Local>) -> bool {
        for member in 0..block.tensor.len() {
            // Commits of one thread arrive in order; of two threads, either may be first.
            let commits = &block.tensor[member].commits;
            let of = |c: &Commit| c.at.warp * W + c.lane;
            let last = commits.last().map(of);
            let found = match self.schedule.last_lane_first() {
                true => commits.iter().position(|c| Some(of(c)) == last),
                false => (!commits.is_empty()).then_some(0),
            };
            if let Some(found) = found {
                let commit = block.tensor[member].commits.remove(found);
                self.arrive_products(block, commit);
                return true;
            }
        }
        false
    }

    fn arrive_products(&mut self, block: &mut Block<W, V::Local>, commit: Commit) {
        let Commit { at, lane, number, mut products } = commit;
        for flight in &mut products {
            if !flight.done {
                self.compute_in_tensor(block, flight);
            }
        }
        let phase = block.mbarriers[number as usize].phase;
        for flight in &products {
            let memory = self.tensor_of(block, at);
            let thread = at.warp * W + lane;
            let again = |f: &Flight| f.at.warp * W + f.lane == thread && f.column == flight.column;
            let later = memory.begun.iter().any(again) || memory.commits.iter().flat_map(|c| &c.products).any(again);
            let bytes = read_by(&flight.panels, &flight.made);
            let ends = InTensor::Ends { number, phase, bytes: [&bytes[0], &bytes[1]], piece: PIECE, later };
            self.tell(block, flight.at, lane, (flight.column, flight.made.cols), 0..4, ends);
        }
        self.tell(block, at, lane, (0, 0), 0..0, InTensor::Arrives { number, phase });
        self.arrives_by_itself(block, At { lanes: 1 << lane, ..at }, number);
    }

    /// Adds a product to tensor memory, or replaces what was there.
    fn compute_in_tensor(&mut self, block: &mut Block<W, V::Local>, flight: &mut Flight) {
        flight.done = true;
        let Flight { made, panels, column, add, .. } = &*flight;
        let bytes: &[u8] = &block.shared;
        let terms = u64::from(made.of[0].terms());
        let elements = |n: usize, lines: u64| -> Vec<Vec<Term>> {
            let of = made.of[n];
            let read = |line: u64, k: u64| {
                let from = panels[n].byte(line, k) as usize;
                let bits = bytes.get(from..from + of.bytes() as usize).unwrap_or_default();
                term(bits.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), of)
            };
            (0..lines).map(|line| (0..terms).map(|k| read(line, k)).collect()).collect()
        };
        let (left, right) = (elements(0, made.rows.into()), elements(1, made.cols.into()));
        let memory = self.tensor_of(block, flight.at);
        for (lane, row) in left.iter().enumerate() {
            for (n, col) in right.iter().enumerate() {
                let Some(word) = memory.word(lane as u64, u64::from(*column) + n as u64) else { continue };
                let begin = if *add { u64::from(*word) } else { 0 };
                *word = row.iter().zip(col).fold(begin, |sum, (x, y)| x.times(*y, sum)) as u32;
            }
        }
    }

    fn begin_load(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        here: u32,
        acc: &Access,
        address: [i64; W],
    ) -> Result<(), Trap> {
        let (super::code::At::Own { buf, len, .. } | super::code::At::Slot { buf, len, .. }) = &acc.at else {
            return Ok(());
        };
        let lane = at.lanes.trailing_zeros() as usize % W;
        let (column, row) = ((address[lane] & 0xffff) as u32, address[lane] >> 16);
        let own = (at.warp % self.program.warps(W)) as i64 % 4;
        if row != own * i64::from(LANES_OF_WARP) {
            self.wrong_in_tensor(at, lane, "a warp loads other lanes of tensor memory than its own 32");
            return Ok(());
        }
        if (0..W).any(|l| at.lanes >> l & 1 == 1 && address[l] != address[lane]) {
            self.wrong_in_tensor(at, lane, "lanes of a warp load from different addresses of tensor memory");
        }
        if !self.tensor_of(block, at).has(column, *len as u32) {
            self.wrong_in_tensor(at, lane, "a warp loads columns that the block has not allocated");
            return Ok(());
        }
        self.tell(block, at, lane, (column, *len as u32), own as u32..own as u32 + 1, InTensor::Loads);
        if block.warps[at.warp].loads.fill(*buf) {
            self.wrong(at, lane, Wrong::Loads);
        }
        block.warps[at.warp].loads.0.push((here, *buf, at, address));
        if self.schedule.lands_at_once() {
            self.load_now(block, at, here, address);
        }
        Ok(())
    }

    fn end_loads(&mut self, block: &mut Block<W, V::Local>, at: At, acc: BufId) {
        let all = std::mem::take(&mut block.warps[at.warp].loads.0);
        let (ended, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, buf, ..)| *buf == acc);
        block.warps[at.warp].loads.0 = others;
        for (here, _, began, address) in ended {
            self.load_now(block, began, here, address);
            let Some(Inst::Tcgen05Load { acc, .. }) = self.program.code.get(here as usize) else { continue };
            let (super::code::At::Own { len, .. } | super::code::At::Slot { len, .. }) = &acc.at else { continue };
            let lane = began.lanes.trailing_zeros() as usize % W;
            let (column, own) = ((address[lane] & 0xffff) as u32, (address[lane] >> 16) as u32 / LANES_OF_WARP);
            self.tell(block, began, lane, (column, *len as u32), own..own + 1, InTensor::Loaded);
        }
    }

    /// Copies a warp's lanes of tensor memory to the arrays of its threads.
    fn load_now(&mut self, block: &mut Block<W, V::Local>, at: At, here: u32, address: [i64; W]) {
        let Some(Inst::Tcgen05Load { acc, .. }) = self.program.code.get(here as usize) else { return };
        let (super::code::At::Own { len, .. } | super::code::At::Slot { len, .. }) = &acc.at else { return };
        let (member, of_row) = (self.member(at.warp), *len as u32 / 4);
        let Block { warps, scratch, shared, tensor, .. } = &mut *block;
        let first_thread = (at.warp * W) as u32;
        let places = Places::<W>::of(
            acc,
            &warps[at.warp].regs,
            first_thread,
            self.program.scratch_bytes,
            self.shared_of(at.warp),
        );
        let mut stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        for l in (0..W.min(32)).filter(|l| at.lanes >> l & 1 == 1) {
            for n in 0..*len as u32 {
                let (row, own) = (n / of_row * 8, n % of_row);
                let lane = (address[l] >> 16) as u64 + u64::from(row) + l as u64 / 4;
                let column =
                    (address[l] & 0xffff) as u64 + u64::from(own / 2 * 8) + l as u64 % 4 * 2 + u64::from(own % 2);
                let word = tensor[member].word(lane, column).map_or(0, |word| *word);
                let _ = stores.write(&places, l, n, word.into());
            }
        }
    }

    /// Columns and products that a block leaves behind.
    pub(super) fn tensor_left(&mut self, block: &mut Block<W, V::Local>, member: usize) -> Vec<(At, usize, Left)> {
        let memory = &mut block.tensor[member];
        let mut left: Vec<(At, usize, Left)> = vec![];
        left.extend(memory.allocated.drain(..).map(|(_, _, at)| (at, 0, Left::Columns)));
        left.extend(memory.begun.drain(..).map(|f| (f.at, f.lane, Left::Tcgen05)));
        left.extend(memory.commits.drain(..).flat_map(|c| c.products).map(|f| (f.at, f.lane, Left::Tcgen05)));
        left
    }
}

/// Where the pieces of both operands lie that an instruction reads, each once.
fn read_by(panels: &[Panel; 2], made: &Instruction) -> [Vec<u64>; 2] {
    std::array::from_fn(|n| {
        let panel = panels[n];
        let (lines, terms) = ([made.rows, made.cols][n], made.of[n].terms());
        let each = (PIECE / panel.bytes) as usize;
        let (line_step, term_step) = if made.transposed[n] { (each, 1) } else { (1, each) };
        let all = (0..lines).step_by(line_step).flat_map(|line| (0..terms).step_by(term_step).map(move |k| (line, k)));
        all.map(|(line, k)| panel.byte(line.into(), k.into()) / PIECE * PIECE).collect()
    })
}

/// Returns true if some pieces of an operand do not lie in its slot.
fn outside(bytes: &[Vec<u64>; 2], panels: &[Panel; 2], slots: [&Access; 2]) -> bool {
    (0..2).any(|n| {
        let super::code::At::Slot { offset, len, elem, .. } = &slots[n].at else { return true };
        let from = panels[n].shared + offset;
        let until = from + len * elem.bytes();
        bytes[n].iter().any(|at| *at < from || at + PIECE > until)
    })
}
