//! Primitives of a schedule: each changes the loops of a kernel in one way, and has one rule for when that is legal.
//!
//! In: a kernel, and a [`Step`] that names loops or buffers of it. Out: the kernel changed, or a sentence that says why not. What
//! the kernel computes stays as it is. Rules choose steps ([`Script`]); a person writes them as text ([`mod@line`], `tile::schedule`).
//!
//! ```text
//! fuse i, j -> b          split k by 256 -> kt, kk          unroll c
//! bind b to block.x       bind kk to thread 256             pipeline kt by 3
//! ```
//!
//! `steps!` below has a row for each: its meaning, from which `docs/schedule.md` is made, its word, its [parts](part) in order of the
//! text, and the call that changes a kernel. `model/` has a second table, for the kernels of a model together. Two rows may have one word, the first of them with a condition on the line.

#[macro_use]
mod part;

pub mod approximate;
pub mod bind;
pub mod blocks;
pub mod bound;
pub mod count;
pub mod digits;
pub mod distribute;
pub mod fill;
pub mod fission;
pub mod fuse;
pub mod hoist;
pub mod interleave;
pub mod jam;
pub mod layout;
pub mod keep;
pub mod line;
pub mod model;
pub mod normalize;
pub mod own;
pub mod pair;
pub mod peel;
pub mod pipeline;
pub mod prefetch;
pub mod privatise;
pub mod promote;
pub mod recompute;
pub mod reorder;
pub mod retype;
pub mod reverse;
pub mod rfactor;
pub mod scan;
mod script;
pub mod serial;
pub mod sink;
pub mod split;
pub mod stage_read;
pub mod stage_row;
pub mod stage_write;
pub mod strip;
pub mod tensorize;
pub mod tile;
pub mod trim;
pub mod turn;
pub mod unbatch;
pub mod unroll;
pub mod unswitch;
pub mod vector;
pub mod windows;

use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::num::DType;
use crate::tile::Context;
use blocks::Order;
use fill::Engine;
pub use line::{Line, LoopRef, find, look, look_where, loop_at};
use part::{Scope, any_number, named, number};
pub use script::{Change, Names, Script, names_behind, names_of, run};
use stage_read::{How, Side};
use tensorize::Unit;

/// The bytes of the buffers that a step makes, at most.
const MOST_BYTES: u64 = 1 << 28;

steps! {
    /// One change of a kernel's loops.
    Step (kernel: &mut Kernel, ctx: &Context)

    /// `approximate LOOP, ..`: The GPU's special function unit computes the exponentials of a loop, which are rounded to
    /// few bits before they are used.
    "approximate" Approximate { loops: Vec<LoopRef> } => approximate::apply(kernel, ctx, loops);
    /// `bind LOOP, .. to block.x` (`.y`, `.z`): Each iteration of an outermost free loop is a block of the grid.
    /// `bind LOOP to thread`: Each iteration of a free loop is a thread; the loop must be the whole body of a block.
    /// `bind LOOP, .. to cluster N`: N blocks of a cluster share all loops over a row, and the first one stores what is
    /// stored once.
    /// `bind LOOP to lanes`: The iterations of a reduction of partial results, which `rfactor` makes, are neighbouring
    /// lanes of a warp, which exchange them.
    /// `bind LOOP, .. to thread N`: N threads share reductions; or all free loops that a block runs, by their elements:
    /// its tiles then lie in shared memory, and the first thread does what is done once.
    "bind" Bind { loops: Vec<LoopRef> = any_number(), to: bind::To } => bind::apply(kernel, ctx, loops, *to);
    /// `bound MEMORY, ..`: Accesses past the end of memory that a program takes for its block do nothing.
    "bound" Bound { memories: Vec<ValId> } => bound::apply(kernel, ctx.check, memories);
    /// `box BUFFER by N`: The rows of a buffer that TMA fills become boxes of N columns, one behind the other: a
    /// swizzle takes rows of at most 128 bytes.
    "box" Box { buf: BufId, columns: u32 = number("how many columns a box has", 1) }
        => layout::in_boxes(kernel, *buf, *columns);
    /// `cluster LOOP by N`: N neighbouring blocks form a cluster: an operand that they share is read once.
    "cluster" Cluster { at: LoopRef, blocks: u32 = number("how many blocks a cluster has", 2) }
        => blocks::apply(kernel, ctx, *at, Order::Cluster(*blocks));
    /// `count LOOP by N` or `shared`: Numbers are counted in bins by one pass through the elements: N copies of the
    /// bins take turns, or threads add to one that they share.
    "count" Count { at: LoopRef, by: count::By } => count::apply(kernel, ctx, *at, *by);
    /// `digits LOOP by N x N .. unroll? -> SLOWEST, ..`: A loop that counts several things at once becomes a loop for
    /// each; N are the counts of all but the slowest. `unroll`: the fastest is written out.
    "digits" Digits {
        at: LoopRef, counts: Vec<u32> = number("a count", 2), unroll: bool,
        names: Vec<String> = named("a name more than there are counts")
    } => digits::apply(kernel, *at, counts, names, *unroll);
    /// `distribute LOOP`: A free loop goes into the loops that stand in its body: columns that are folded become rows.
    /// A value that an iteration keeps becomes an array.
    "distribute" Distribute { at: LoopRef } => distribute::apply(kernel, *at);
    /// `enclose LOOP, .. -> NAME`: One block does the work of outermost loops, or of the whole kernel if no loop is
    /// named.
    "enclose" Enclose { loops: Vec<LoopRef> = any_number(), name: String = named("the name of the loop that it makes") }
        => bind::enclose(kernel, loops, name);
    /// `fill BUFFER, .. by async`: Asynchronous copies fill the stages of a pipeline while threads compute.
    /// `fill BUFFER, .. by tma`: The tensor memory accelerator copies a box of a tensor into each stage of a serial
    /// loop.
    "fill" Fill { bufs: Vec<BufId>, by: Engine } => fill::apply(kernel, ctx, bufs, *by);
    /// `fission LOOP`: A free loop becomes several, one for each loop in its body: each goes through the rows of a group
    /// before the next. A value that an iteration keeps becomes an array.
    "fission" Fission { at: LoopRef } => fission::apply(kernel, *at);
    /// `fuse LOOP, .. -> NAME`: Perfectly nested free loops, or serial ones, become one loop over the numbers of their
    /// iterations.
    "fuse" Fuse { loops: Vec<LoopRef>, name: String = named("the name of the loop that it makes") }
        => fuse::apply(kernel, loops, name);
    /// `group LOOP by N`: Blocks are numbered through N iterations of the inner loop over them before the next of the
    /// outer one.
    "group" Group { at: LoopRef, rows: u32 = number("how many rows a group has", 1) }
        => blocks::apply(kernel, ctx, *at, Order::Group(*rows));
    /// `hoist LOOP`: Statements that are the same for all iterations of a loop run once, before it: its first ones, or
    /// else those of the loop at its end, whose values are kept; of a serial loop, its stages.
    "hoist" Hoist { at: LoopRef } => hoist::apply(kernel, *at);
    /// `interleave LOOP`: An innermost loop over two to four kinds of elements is written out, so that the loop around
    /// it can run in vectors of each kind.
    "interleave" Interleave { at: LoopRef } => interleave::apply(kernel, *at);
    /// `jam LOOP by N`: N iterations of a loop are taken together in each iteration of the free loop inside; or N rows
    /// that are folded are folded at the same time; or each iteration of an innermost reduction folds N terms.
    "jam" Jam { at: LoopRef, together: u32 = number("how many iterations go together", 2) }
        => jam::apply(kernel, *at, *together);
    /// `keep BUFFER by N`: The copies of an operand that a serial loop makes in its first N iterations stay for the
    /// next blocks of a worker that read the same.
    "keep" Keep { buf: BufId, slots: u32 = number("how many copies stay", 2) } => keep::apply(kernel, ctx, *buf, *slots);
    /// `normalize LOOP, ..`: Loops that run in order count from 0 in steps of 1.
    "normalize" Normalize { loops: Vec<LoopRef> } => normalize::apply(kernel, loops);
    /// `own BUFFER, .. by THREADS rolled?`: Each thread of a block has some elements of a tile for itself, in
    /// registers: no thread needs those of another. `rolled`: in its own memory, and the nests stay loops.
    "own" Own { bufs: Vec<BufId>, threads: u32 = number("a number of threads", 1), rolled: bool }
        => own::apply(kernel, ctx, bufs, *threads, *rolled);
    /// `pad BUFFER by N`: Each row of a buffer in shared memory is N elements longer.
    "pad" Pad { buf: BufId, elements: u32 = number("how many elements longer a row is", 1) }
        => layout::pad(kernel, ctx, *buf, *elements);
    /// `pair LOOP, ..`: The terms of sums of products are taken two or four at a time, as words whose elements one
    /// instruction multiplies and adds.
    "pair" Pair { loops: Vec<LoopRef> } => pair::apply(kernel, ctx, loops, &|_| false);
    /// `peel LOOP`: A loop ends where conditions in it turn; the other iterations follow in loops of their own.
    "peel" Peel { at: LoopRef } => peel::apply(kernel, *at);
    /// `persist LOOP by N`: N blocks take the iterations of the loops over blocks in turn.
    "persist" Persist { at: LoopRef, blocks: u32 = number("how many blocks there are", 1) }
        => blocks::apply(kernel, ctx, *at, Order::Persist(*blocks));
    /// `pipeline LOOP by N roles? overlap?`: The stages of a loop are filled ahead, into N slots; `roles`: by a warp of
    /// its own; `overlap`: beside the product before.
    "pipeline" Pipeline { at: LoopRef, depth: u32 = number("how many slots there are", 1), roles: bool, overlap: bool }
        => pipeline::apply(kernel, ctx, *at, *depth, *roles, *overlap);
    /// `prefetch LOOP, LOOP`: Each iteration of the first loop asks for memory that the second one, in the same body,
    /// needs in the same iteration: what it writes if it stands behind, and what it reads in the next block if it
    /// stands before.
    "prefetch" PrefetchPass { loops: Vec<LoopRef> } if |line| line.by.is_empty() => prefetch::passes::apply(kernel, ctx, loops);
    /// `prefetch LOOP by N`: Each iteration asks for memory that is read N iterations later, where it lies further
    /// apart than a processor foresees.
    "prefetch" Prefetch { at: LoopRef, ahead: u32 = number("how many iterations ahead it asks", 1) }
        => prefetch::apply(kernel, ctx, *at, *ahead);
    /// `prefetch_panel LOOP`: Each iteration asks for a part of the panel of memory behind the one that it reads, which
    /// the loops around it read again and again.
    "prefetch_panel" PrefetchPanel { at: LoopRef } => prefetch::panel::apply(kernel, ctx, *at);
    /// `privatise LOOP, ..`: Each iteration of a loop has buffers of its own for the parts of larger ones that only it
    /// uses.
    "privatise" Privatise { loops: Vec<LoopRef> } => privatise::apply(kernel, loops);
    /// `promote MEMORY by N (x N)..`: Memory that a program takes for its block becomes a buffer of that shape, in
    /// whose rows its accesses stay.
    "promote" Promote { memory: ValId, shape: Vec<u64> = number("a number of elements", 1) }
        => promote::apply(kernel, *memory, shape);
    /// `recompute BUFFER`: Each pass over a row computes its elements anew, and the row is not kept.
    "recompute" Recompute { buf: BufId } => recompute::apply(kernel, ctx, *buf);
    /// `reorder LOOP, ..`: Perfectly nested free loops get this order, outermost first.
    "reorder" Reorder { loops: Vec<LoopRef> } => reorder::apply(kernel, loops);
    /// `retype BUFFER to TYPE`: A buffer holds its numbers as a type that has all of them.
    "retype" Retype { buf: BufId, to: DType } => retype::apply(kernel, *buf, *to);
    /// `reverse LOOP, ..`: Free loops run from their other end.
    "reverse" Reverse { loops: Vec<LoopRef> } => reverse::apply(kernel, loops);
    /// `rfactor LOOP by N x M -> PART, ROUND, INNER`: Stretches of M iterations go to N results in turn, which a nest
    /// of their own computes. `INNER` is the loop over a stretch; it is left out where M is 1.
    "rfactor" RfactorInTurn {
        at: LoopRef, parts: u32 = number("results", 1), size: u32 = number("iterations", 1),
        names: Vec<String> = named("the names of the loops that it makes")
    } if |line| line.by.len() == 3 => rfactor::in_turn::apply(kernel, *at, [*parts, *size], names);
    /// `rfactor LOOP by N -> OUTER, INNER`: A reduction that may be reassociated folds stretches of N iterations, each
    /// into a result of its own.
    "rfactor" Rfactor {
        at: LoopRef, size: u32 = number("how many iterations a stretch has", 1),
        names: [String; 2] = named("the names of the two loops that it makes")
    } => rfactor::apply(kernel, *at, *size, names);
    /// `scan LOOP by THREADS x N`: Threads share a scan, in which each element is what all elements up to it come to;
    /// each has N elements of a stretch.
    "scan" Scan { at: LoopRef, threads: u32 = number("threads", 1), each: u32 = number("elements", 1) }
        => scan::apply(kernel, *at, *threads, *each);
    /// `serial LOOP, ..`: The iterations of free loops run one after the other.
    "serial" Serial { loops: Vec<LoopRef> } => serial::apply(kernel, loops);
    /// `sink LOOP`: The statements before a loop, in the body of another, move into it and run in each of its
    /// iterations.
    "sink" Sink { at: LoopRef } => sink::apply(kernel, *at);
    /// `split LOOP by N guard? -> OUTER, INNER`: A loop is split into pieces of N iterations. The last piece is
    /// shorter, or with `guard` tests each iteration.
    "split" Split {
        at: LoopRef, size: u32 = number("how many iterations a piece has", 1), guard: bool,
        names: [String; 2] = named("the names of the two loops that it makes")
    } => split::apply(kernel, *at, (*size).into(), names, *guard);
    /// `stage_read LOOP by a` (`b`) `rows`: The left (right) operand of the sum over a loop is copied close to where it
    /// is used, row by row.
    /// `stage_read LOOP by a panels N`: The same in panels of N rows, or of N columns of the right operand: a register
    /// tile reads one panel from end to end.
    /// `stage_read LOOP by a windows`: Windows that overlap share one copy of the elements that they lie on.
    /// `stage_read LOOP by a shared TYPE?`: The threads of a block share the copy; as another type if that has all
    /// numbers of the operand.
    "stage_read" StageRead { at: LoopRef, side: Side, how: How } => stage_read::apply(kernel, ctx, *at, *side, *how);
    /// `stage_row LOOP, ..`: A row that several loops of a block go through is loaded once, into a tile.
    "stage_row" StageRow { loops: Vec<LoopRef> } => stage_row::apply(kernel, loops);
    /// `stage_write BUFFER, ..`: The sums of register tiles start in registers and what follows them is done there: the
    /// accumulator leaves memory.
    "stage_write" StageWrite { bufs: Vec<BufId> } if |line| line.by.is_empty() => stage_write::apply(kernel, bufs);
    /// `stage_write LOOP by shared` or `tma`: The results that a nest stores are collected in shared memory, and copied
    /// to their array from there: by all threads, or in boxes by TMA.
    "stage_write" StageResults { at: LoopRef, by: stage_write::By } => stage_write::results(kernel, ctx, *at, *by);
    /// `strip LOOP by LANES x VECTORS (x N)?`: A loop that carries an array computes one strip of VECTORS vectors after
    /// the other, in registers; if it has more than N iterations, it runs as before.
    "strip" Strip {
        at: LoopRef, lanes: u32 = number("a number of lanes", 2), vectors: u32 = number("a number of vectors", 1),
        most: u32 = number("a number of iterations", 0).or(0)
    } => strip::apply(kernel, ctx, *at, strip::Strip { lanes: *lanes, vectors: *vectors, most: *most });
    /// `swizzle BUFFER by BYTES`: 16-byte pieces of the rows that TMA fills are exchanged, so that columns lie in
    /// different banks.
    "swizzle" Swizzle { buf: BufId, bytes: u32 = number("the bytes of a row", 32) } => layout::swizzle(kernel, *buf, *bytes);
    /// `tensorize LOOP as registers R x C by LANES`: Tiles of R rows and C columns of the sum over a loop stay in a
    /// processor's vector registers.
    /// `tensorize LOOP as tiles R x C by LANES`: The processor's matrix unit (AMX) computes whole tiles, register tiles
    /// the rest.
    /// `tensorize LOOP as threads R x C`: Each thread of a block has R rows and C columns of the sum in registers.
    /// `tensorize LOOP as warps D x A`: D x A warps share the rows and columns of the sum, on the matrix unit.
    /// `tensorize LOOP as groups D x A`: The same with groups of four warps, which have rows below each other.
    /// `tensorize LOOP as rows N`: N warps have whole rows of the sum, and of all that is computed from them: row by
    /// row folds, and products with them as operands.
    /// `tensorize LOOP, .. as warpgroup`: Groups of four warps compute products that single warps computed.
    /// `tensorize LOOP, .. as tcgen05`: The same, with sums in tensor memory while the loop of the products runs.
    "tensorize" Tensorize { loops: Vec<LoopRef>, unit: Unit } => tensorize::apply(kernel, ctx, loops, *unit);
    /// `tile LOOP by M x K`: The loop over the keys of attention: a block takes M rows, and K keys at a time.
    "tile" Stream { at: LoopRef, rows: u32 = number("rows", 1), keys: u32 = number("keys", 1) } if |line| line.by.len() == 3
        => tile::stream(kernel, *at, [*rows, *keys]);
    /// `tile LOOP by M x N x K`: The sum over a loop runs in blocks of M rows, N columns and K terms. In a kernel
    /// without a grid these are its blocks, with masks at the edges.
    "tile" Tile { at: LoopRef, m: u32 = number("rows", 1), n: u32 = number("columns", 1), k: u32 = number("terms", 1) }
        => tile::apply(kernel, ctx, *at, [*m, *n, *k]);
    /// `trim LOOP, ..`: Loops that fill a buffer end where nothing of it is read any more.
    "trim" Trim { loops: Vec<LoopRef> } => trim::apply(kernel, loops);
    /// `turn LOOP, LOOP by N`: Two free loops run in blocks of N x N: what is loaded along the first goes through a
    /// buffer, and all else runs along the second.
    "turn" Turn { loops: Vec<LoopRef>, size: u32 = number("how long the side of a block is", 2) }
        => turn::apply(kernel, loops, *size);
    /// `unbatch BUFFER`: A buffer of several matrices becomes one for each, and the loops over them are written out.
    "unbatch" Unbatch { buf: BufId } => unbatch::apply(kernel, *buf);
    /// `unroll LOOP, ..`: The copies of a loop's body are written out, and those of the loops in it.
    "unroll" Unroll { loops: Vec<LoopRef> } => unroll::apply(kernel, loops);
    /// `unswitch LOOP`: Conditions that a loop does not change are tested once before it. Before a loop over threads,
    /// only conditions that hold for a whole block are.
    "unswitch" Unswitch { at: LoopRef } => unswitch::apply(kernel, *at);
    /// `vector LOOP, .. by LANES (x WAYS)?`: LANES iterations of an innermost loop run at a time in a vector register;
    /// a reduction adds to WAYS registers in turn. Two loops that stand in each other and turn what they move go in
    /// squares.
    /// `vector LOOP, .. by LANES` on a GPU: A thread accesses LANES elements at once: of an unrolled loop, or of a
    /// reduction that threads share.
    "vector" Vector {
        loops: Vec<LoopRef>, lanes: u32 = number("a number of lanes", 2), ways: u32 = number("a number of vectors", 1).or(1)
    } => vector::apply(kernel, ctx, loops, *lanes, *ways);
    /// `windows LOOP by N`: Reductions over windows inside of free loops are written out, so that vectors run along the
    /// positions of the result; the positions at the edges are split off, and up to N neighbours are computed together,
    /// which load once what they share.
    "windows" Windows { at: LoopRef, together: u32 = number("how many neighbours go together", 1) }
        => windows::apply(kernel, ctx, *at, *together);
}

impl Step {
    /// The step as text, in the names of the kernel that it is for.
    pub fn line(&self, kernel: &Kernel) -> Line {
        self.text(&Scope::new(kernel, &[]))
    }

    /// The step that a line states of a kernel.
    pub fn read(line: &Line, kernel: &Kernel) -> Result<Step, String> {
        let Some(row) = FORMS.iter().find(|row| row.word == line.word && (row.has_form)(line)) else {
            return Err(match model::words().any(|word| word == line.word) {
                true => format!("`{}` is a step of the section `model`", line.word),
                false => {
                    let known = suggestion("primitives", &line.word, words().chain(["policy"]));
                    format!("unknown primitive `{}`; {known}", line.word)
                }
            });
        };
        row.step(line, &Scope::new(kernel, &[]))
    }

    /// Changes the kernel; gives the axes of the loops that the step makes. Where it refuses, the kernel is to be thrown away.
    pub fn apply(&self, kernel: &mut Kernel, ctx: &Context) -> Result<Vec<AxisId>, String> {
        let from = kernel.axes.len();
        self.call(kernel, ctx)?;
        Ok(kernel.axes.keys().skip(from).collect())
    }
}

impl Change for Step {
    type Of = Kernel;
    fn said(&self, of: &Kernel) -> Line {
        self.line(of)
    }
    fn attempt(&self, of: &mut Kernel, ctx: &Context) -> Result<(), String> {
        let mut changed = of.clone();
        self.apply(&mut changed, ctx)?;
        *of = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
