//! The numbers that decide: where a policy stops, what it guesses, and what an estimate counts.
//!
//! Facts of hardware (the bytes of a box, the lanes of a warp) stand with the target, and limits of a step beside the step. The line
//! above a number says what it counts, and the measurement that chose it where there is one; the others were reasoned.
//! `girih rules NAME` prints those of a policy, and `named!` names one in a reason.

/// One of these numbers.
pub struct Heuristic {
    /// The policy, primitive or estimate that it is of.
    pub of: &'static str,
    pub name: &'static str,
    /// As it is written here.
    pub value: &'static str,
    pub doc: &'static str,
}

macro_rules! heuristics {
    ($($of:ident { $($(#[doc = $doc:literal])+ $name:ident: $ty:ty = $value:expr,)+ })+) => {
        $(pub mod $of {
            $($(#[doc = $doc])+ pub const $name: $ty = $value;)+
        })+

        /// All of them, in the order of their policies.
        pub const ALL: &[Heuristic] = &[
            $($(Heuristic {
                of: stringify!($of),
                name: stringify!($name),
                value: stringify!($value),
                doc: concat!($($doc),+),
            },)+)+
        ];
    };
}

/// A number as a reason names it: `16 (LEAST_ROWS)`.
macro_rules! named {
    ($name:ident) => {
        format_args!("{} ({})", $name, stringify!($name))
    };
}
pub(crate) use named;

heuristics! {
    blockify {
        /// Elements that a block should at least compute, so that starting it does not show.
        BLOCK_WORK: i64 = 1 << 14,
        /// Elements of an innermost loop from which it is shared among blocks.
        SPLIT_FROM: i64 = 1 << 13,
        /// Rows of a piece that is read along one of its sides and written along the other.
        PIECE_ROWS: i64 = 64,
        /// Columns of such a piece.
        PIECE_COLUMNS: i64 = 256,
        /// Elements up to which nests that follow one another are one block's.
        SMALL: i64 = 1 << 13,
        /// Extents that are not known are taken to be this long.
        GUESS: i64 = 512,
        /// Columns that a block folds at most: what it has of each lies in a cache. Runs of 4096 elements of a row are read half as
        /// fast again as those of 1024, and twice as fast as those of 512, where they do not begin with a page.
        MOST_COLUMNS: i64 = 4096,
        /// Bytes of the rows that a block keeps of its columns at most, so that they lie in L2.
        MOST_KEPT: i64 = 1 << 19,
        /// Columns of a block at least: a line of the cache of f32.
        LEAST_COLUMNS: i64 = 16,
    }
    blocking {
        /// Most rows of a block: with 64 columns the accumulators take an eighth of a usual L2.
        MOST_ROWS: u64 = 512,
        /// Longest stretch of k: a panel of 32 columns of f32 then takes 32 KiB of L1.
        LONGEST_STRETCH: u64 = 256,
        /// Terms that are multiplied in the time that a sum takes on its way through memory. (24 terms of 144 rows and 3136 columns take
        /// 0.76 of the time in blocks of 112 columns, which divide them, of that in blocks of 128.)
        MOVED: u64 = 8,
        /// Rows and columns of the largest block of threads: 64 accumulators for each of 256 threads.
        WIDEST: u64 = 128,
        /// Columns of the largest block of warpgroups whose operands TMA brings: 128 sums for each of 256 threads. An operand's byte is
        /// used half as often again, and the matrix unit reads a third less of shared memory for a product.
        WIDEST_OF_GROUPS: u64 = 256,
        /// Elements of the smallest block, but where the product is smaller.
        SMALLEST: u64 = 32 * 32,
        /// Rows are taken to be as many where only the launch knows.
        GUESSED_ROWS: u64 = 64,
        /// Estimates that differ by less than this part are alike.
        ALIKE: f64 = 0.1,
    }
    chunk_matmul_k {
        /// The shortest stretch that is worth a step.
        SHORTEST: u64 = 4,
    }
    cluster_rows {
        /// Blocks of a cluster at most that every device of a target has.
        MOST: u32 = 8,
        /// Cycles in which the blocks of a cluster meet and read what each other has.
        MEETING: f64 = 600.0,
        /// The fewest elements of a part: some for each thread of a block.
        SHORTEST: u64 = 512,
    }
    contraction {
        /// Rows of an image that tiles keep within.
        LEAST_ROW: u64 = 7,
        /// Accumulators that hide the latency of every machine's multiply-adds, and then some: more would only make the code longer.
        ENOUGH: u32 = 16,
        /// Accumulators that a machine adds to before the first of them is ready again.
        IN_FLIGHT: u32 = 8,
    }
    cooperative_reduce {
        /// Warps that a reduction should have work for.
        SHORTEST: i64 = 2,
        /// Elements of a row that a thread folds at most where a row has fewer than the most threads: it may keep them in registers.
        MOST_EACH: u64 = 32,
        /// Extents that are not known are taken to be this long.
        GUESS: i64 = 1024,
    }
    cooperative_scan {
        /// The shortest rows that threads share.
        SHORTEST: i64 = 64,
        /// Extents that are not known are taken to be this long.
        GUESS: u64 = 1024,
        /// Bytes of shared memory that a stretch of all rows takes at most.
        STRETCH: u64 = 32 << 10,
    }
    cost {
        /// Seconds that a second kernel takes at least.
        SECOND: f64 = 4e-6,
        /// The part that L2 delivers of what all multiprocessors together can take from it: on an H200, a product in blocks of 128 x
        /// 128 read 2.2 GB in 252 us, 0.53 of 64 bytes in each cycle of each multiprocessor.
        L2: f64 = 0.53,
        /// Bytes that one multiprocessor takes from L2 in a cycle.
        FETCHED: f64 = 64.0,
        /// Registers of a thread besides its accumulators: addresses and parts of both operands.
        OTHER_REGISTERS: u64 = 64,
        /// Products in the time that shared memory takes for the fragments of one `ldmatrix`.
        LOADING: f64 = 2.0,
        /// Threads from which on a block keeps its multiprocessor busy with another.
        ENOUGH_THREADS: u64 = 128,
        /// Slots of a slab that a pipeline has at least.
        SLOTS: u64 = 2,
        /// Cycles from a load of memory to its value.
        LATENCY: f64 = 600.0,
        /// Loads that a thread has under way.
        UNDER_WAY: f64 = 8.0,
        /// Cycles in which the threads of a warp exchange what they have.
        SHUFFLE: f64 = 25.0,
        /// Cycles in which the warps of a block exchange what they have.
        ACROSS: f64 = 80.0,
        /// Instructions that a multiprocessor issues in a cycle.
        ISSUED: f64 = 4.0,
        /// Instructions of a warp that folds an element of each lane.
        FOLDING: f64 = 4.0,
        /// Instructions of a warp for an exchange.
        EXCHANGING: f64 = 6.0,
        /// Cycles of a step that waits for shared memory.
        STEP: f64 = 30.0,
    }
    compute_once {
        /// Operations for an element that a row must be spared.
        LEAST: i64 = 8,
        /// Bytes of all that is kept for a row, at most. They come from the second cache in time: 36 KiB for the 16 elements of a
        /// bicubic sample take 0.65 of the time of computing them for each channel.
        MOST_KEPT: u64 = 1 << 16,
    }
    count_bins {
        /// Numbers from which on counting them one after the other takes longer.
        FROM: u64 = 8,
        /// Numbers at most: their bins lie in a cache.
        MOST: u64 = 1 << 14,
        /// Copies of a processor's bins that take turns: equal neighbours then do not wait for each other.
        COPIES: u32 = 4,
        /// Bytes at most of the bins of all elements, found in vectors before any is counted: they stay in the second cache. 8,192 elements
        /// take 0.55 of the time of finding each bin as it is counted.
        MOST_FOUND: u64 = 1 << 18,
    }
    double_buffer {
        /// Threads that a multiprocessor should have, where two slots of each of their blocks fit.
        BUSY: u64 = 512,
        /// The most slots that are chosen: the latency of memory is some iterations long.
        MOST: u64 = 4,
        /// Threads that a multiprocessor should have where warpgroups multiply twice in an iteration, as in attention.
        GROUPED: u64 = 256,
        /// The most slots of such an iteration: one is filled while two are read.
        SLOTS_OF_TWO: u64 = 3,
    }
    stage_write {
        /// The most statements for each vector of the tile: they are written out for all of them.
        MOST_STATEMENTS: usize = 8,
    }
    fission_rows {
        /// Bytes of the rows of a group, at most. Softmax of 32 x 128 elements takes 0.73 of the time in groups of 4 rows, of 16 x 256 0.84 in
        /// groups of 2; longer groups take longer than lone rows where memory is read for the first time.
        GROUP: u64 = 2048,
        /// Rows of a group, at most.
        MOST: u64 = 16,
    }
    fold_columns {
        /// Rows that a warp should at least fold.
        LEAST_EACH: u64 = 4,
        /// Warps of a block.
        WARPS: u64 = 8,
        /// Warps of a block that has a multiprocessor's columns almost alone.
        MOST_WARPS: u64 = 32,
        /// Threads that a multiprocessor should have.
        BUSY: u64 = 1024,
        /// Bytes of an element up to which a lane has several neighbouring columns: a warp reads 128 bytes of wider ones as it is.
        NARROW: u64 = 2,
        /// Lanes that have the columns of a block, at least: a row of 64 bytes.
        LEAST_LANES: u64 = 4,
        /// Partial results of a column at most: one thread adds them up.
        MOST_PARTS: u64 = 64,
        /// Narrow accesses that have as much under way as a wide one, as far as threads are concerned.
        ACCESSES: u64 = 2,
    }
    fold_rows {
        /// The longest rows: longer ones have a warp's work.
        LONGEST: u64 = 1024,
        /// Rows for each multiprocessor at least.
        LEAST_ROWS: u64 = 16,
        /// Lanes that a row has at least.
        LEAST_LANES: u64 = 4,
    }
    interchange {
        /// Statements of a row that is folded together with others, at most.
        MOST_STATEMENTS: usize = 12,
        /// Rows whose sums are added up on their own before they are added to the others: errors of rounding grow with the length of
        /// a chain.
        CHAIN: i64 = 64,
        /// Bytes of the rows that are kept of all columns, at most.
        MOST_KEPT: u64 = 1 << 23,
    }
    interleave_stores {
        /// Iterations that fill a vector.
        LEAST: i64 = 4,
    }
    keep_stages {
        /// The part of the second cache for copies that stay from block to block, as a divisor: the rest is for what passes. Half of
        /// a 2 MiB cache cuts the time of f32 products in blocks of 64 to 0.86 (1024 x 1024), 0.83 (2048 x 2048) and 0.65 (1000 x 1000).
        PART: u64 = 2,
        /// Copies that stay, at least.
        LEAST: u64 = 4,
    }
    keep_tiles {
        /// Bytes of shared memory of each thread for what it folds with others, beside the tiles of the block.
        FOLDED: u64 = 40,
    }
    l2_reuse {
        /// At most this many waves are counted; they stand for all.
        MOST_WAVES: u64 = 64,
        /// The part of the bytes from memory that an order must save.
        LEAST: f64 = 0.1,
    }
    mark_unroll {
        /// Statements after unrolling.
        MOST_STATEMENTS: u64 = 96,
    }
    matrix {
        /// Accumulators of a thread, which leave room for fragments.
        REGISTERS: u64 = 64,
        /// Accumulators of a thread where threads are few.
        MOST_REGISTERS: u64 = 128,
        /// Warps of a block, one for each part of a multiprocessor.
        ENOUGH: u64 = 4,
    }
    overlap_products {
        /// Slots from which on products overlap by themselves.
        ENOUGH: u32 = 4,
        /// Slots that it takes.
        LEAST: u32 = 3,
    }
    pad_smem {
        /// Paddings that are tried.
        MOST_STEPS: u64 = 4,
    }
    pair_terms {
        /// Rows from which on words are worth making where they are used.
        ENOUGH_ROWS: i64 = 8,
    }
    peel {
        /// Bodies longer than this are not copied.
        MOST_STATEMENTS: usize = 64,
        /// Iterations of a piece, at least.
        LEAST_PIECE: i64 = 16,
        /// Pieces of a loop, at most.
        MOST_PIECES: usize = 16,
    }
    prefetch {
        /// Pieces at most so far apart are foreseen from the addresses of one load.
        FORESEEN: u64 = 2048,
        /// Bytes that are on their way.
        AHEAD: u64 = 2048,
        /// Pages of a panel of a register tile from which on it is worth while. (1x1 convolutions of 7 x 7 pixels whose weights are not in
        /// the second cache take 0.87 to 0.91 of the time.)
        PAGES: u64 = 2,
        /// Pieces of more bytes are followed from their beginning.
        LONGEST: u64 = 512,
        /// Pieces of a register tile's panel may have this many bytes: nine rows of 32 columns of f32 have 1152.
        LONGEST_IN_TILE: u64 = 2048,
        /// A loop needs this many times the iterations that it prefetches ahead: a shorter one would fetch too much that it does not read.
        ROUNDS: u64 = 4,
        /// Bytes of a row that a pass asks for before a later one writes it, at least. (On a Zen 4 a layer norm of
        /// 32768 rows of 300 elements takes 0.68 of the time, one of 8192 rows of 1024 0.77, a softmax of 4096 x 4096 0.84; rows that the
        /// second cache keeps take as long as before.)
        SHORTEST_ROW: u64 = 1024,
        /// Loops between a pass that asks and the one that needs the memory, at most.
        MOST_PASSES: usize = 8,
    }
    rows_in_turn {
        /// Elements that a thread folds in the time in which all threads combine what they have.
        COMBINED: u64 = 32,
    }
    share_rows {
        /// Warps that the longest loop of a row should have work for.
        SHORTEST: u64 = 2,
    }
    sink_rows {
        /// Statements that are done again for each element at most.
        MOST: usize = 24,
    }
    split_digits {
        /// Terms of a fold that are written out.
        MOST_UNROLLED: i64 = 8,
        /// Fewer iterations than this are not worth the order of the elements.
        WORTHWHILE: i64 = 4,
    }
    split_edges {
        /// Iterations of a loop whose vectors rather have lanes that are off than loops of their own, at most.
        FEW: i64 = 96,
    }
    split_keys {
        /// Rows of attention at most: one tile of the matrix unit.
        MOST_ROWS: u64 = 16,
        /// Blocks for each multiprocessor.
        BLOCKS: u64 = 2,
        /// Keys that a block takes at once.
        STRETCH: u64 = 64,
        /// Cycles that a warp takes for an element of a key's row, or of its value's. By the estimate for sm_90a, a warp takes 80 us for
        /// 4096 keys with rows of 128 elements, and 28 us for 2048 with rows of 64.
        PER_ELEMENT: f64 = 0.08,
        /// Elements that take as long as the weight of a key does.
        SOFTENED: f64 = 176.0,
        /// Seconds for a part that is joined. By the estimate for sm_90a, 8 parts take 1.2 us, and 32 take 4.6 us.
        JOINED: f64 = 1.45e-7,
    }
    split_matmul_k {
        /// How many times the time of whole stretches parts take that need masks.
        MASKED: f64 = 1.25,
        /// Stretches whose operands are on their way while one is multiplied.
        AHEAD: f64 = 3.0,
    }
    split_reduction {
        /// The fewest elements of a part of a column.
        SHORTEST_COLUMN: u64 = 256,
        /// The fewest elements of a part: a few for each thread of a block.
        SHORTEST: u64 = 1024,
        /// Blocks for each multiprocessor at most, which hide one another's latency.
        BLOCKS: u64 = 8,
        /// Blocks of all rows together on a processor.
        BLOCKS_OF_CORES: u64 = 64,
        /// The fewest elements of each of these blocks.
        SHORTEST_OF_CORES: u64 = 1 << 16,
    }
    stage_inputs {
        /// Elements of a row from which on reading it where it lies costs less than a copy.
        LONG_ROW: u64 = 64,
        /// How far apart windows, or the elements of one, may lie.
        MOST_APART: i64 = 8,
        /// Panels of register tiles that read a left operand where it lies, at most: each of them reads all of it again.
        /// (1x1 convolutions of 7 x 7 and 14 x 14 pixels with two panels take 0.87 to 0.97 of the time with a copy, and 1000^3 with the left
        /// operand transposed and four panels 0.94.)
        FEW_READERS: u64 = 4,
        /// Panels whose rows may lie in one place of the first cache: it keeps eight lines and more there.
        MOST_PANELS: u64 = 8,
    }
    stream_rows {
        /// Rows of a block at least where its threads copy keys and values: one warp, which has sixteen, would have few copies under way.
        /// By the estimate, one query of 32 heads and 4096 keys takes 57 us on sm_80, and 77 with a warp alone.
        COPYING: u64 = 32,
        /// Rows from which a block may have more.
        MANY: u64 = 1024,
        /// Elements of a row of values up to which two warpgroups take 128 keys at once: scores, weights and sums stay in registers.
        NARROW: u64 = 64,
    }
    strip_carried {
        /// Iterations of a loop that goes through strips, at most. (On a Zen 4 that others used, Triton's layer norm in blocks of 1024
        /// columns took 0.67 to 0.77 of the time for one block, 0.88 for two, and 0.95 for four and for eight, each the median of four runs;
        /// without this limit 1.02 to 1.09 for 32 and 1.14 to 1.22 for 64. Sums of 4 to 16 rows of a matrix took 0.69 to 0.91.)
        MOST_ITERATIONS: u32 = 8,
        /// Vectors of a strip, at most. (Eight and four take the same time, within a tenth; two take up to half as much again.)
        MOST_VECTORS: u32 = 8,
        /// Statements of a strip, which are written out, at most.
        MOST_STATEMENTS: usize = 96,
    }
    swap_operands {
        /// An element that is moved by itself takes as long as this many that a square of vectors transposes.
        ONE_BY_ONE: u64 = 4,
        /// Blocks of columns divide planes whose elements are a multiple of this number.
        PLANE: u64 = 64,
        /// This many multiplications in lanes that no column fills take as long as an element that is transposed.
        MULTIPLIED: u64 = 12,
        /// An element of an operand takes as long as this many of a result, which is moved through memory in any case. (50 columns of 1000
        /// rows and 128 terms take 1.45 of the time with the operands swapped.)
        OPERAND: u64 = 4,
        /// An element that comes from beyond the second cache takes as long as this many that a square of vectors transposes. (On a Zen 4
        /// 0.32 and 0.15 ns: 64 to 32 channels of 128 x 128 take 5.81 ms swapped and 6.23 as they are, 32 to 32 channels 2.94 and 3.10.)
        FETCHED: u64 = 2,
        /// Lines of the second cache whose addresses are a multiple of its size over this number apart share a set.
        WAYS: u64 = 16,
        /// Vectors of columns of a register tile.
        VECTORS: u64 = 2,
        /// Terms of the stretches that a long sum is cut into, about.
        STRETCH: u64 = 256,
        /// Rows of a register tile, about.
        HIGH: u64 = 8,
    }
    tileify {
        /// Extents that are not known are taken to be this long.
        GUESS: u64 = 4096,
        /// Terms of a stretch of whole windows, at least.
        LEAST_STRETCH: u64 = 64,
        /// Terms of a stretch of whole windows, at most.
        MOST_STRETCH: u64 = 256,
    }
    transpose {
        /// The longest side of what is written out as squares: what `interchange` cuts blocks of.
        MOST: u64 = 16,
        /// The most squares that a pair of loops is written out as; of more, loops run over them.
        MOST_SQUARES: u64 = 4,
    }
    trim {
        /// Ends from which on they are too long to be computed each time.
        LONGEST: usize = 32,
    }
    jam_terms {
        /// Terms of a kind that follow each other, at least: a vector of them.
        SHORTEST: i64 = 8,
    }
    unroll_and_jam {
        /// Groups of rows that have to be there, so that many threads have some.
        LEAST_GROUPS: u64 = 32,
        /// Terms of a row from which on it is worth it: short ones are one long run as they lie.
        LONG: u64 = 512,
        /// Statements of all folds together, at most: two products with weights of 4 bits are 24, eight of their words 45.
        MOST_STATEMENTS: u64 = 512,
        /// Rows that are multiplied by the same ones at the same time, at most; of more, four or two.
        MOST_SHARED: u64 = 8,
        /// Sums that are made at the same time, at most: half of the registers hold them.
        MOST_SUMS: u64 = 16,
        /// Elements of a row for which something is loaded once, at least: a vector's.
        SELDOM: i64 = 16,
    }
    unroll_batch {
        /// Products that one becomes at most.
        MOST: u64 = 8,
    }
    unroll_windows {
        /// Positions of all windows of an element, at most.
        MOST_TAPS: u64 = 64,
        /// Statements of all copies, at most.
        MOST_STATEMENTS: usize = 8192,
        /// Positions of windows whose lanes are filled one by one, at most.
        MOST_GATHERED: u64 = 16,
        /// Elements of a row for which weights are copied that lie apart, at least: each copy costs about two of its uses.
        LEAST_USES: u64 = 8,
        /// Windows that are computed together where channels lie side by side, at most: they share what they load, and two multipliers of a
        /// core that each wait four cycles for a sum before they add to it are busy with eight sums.
        MOST_JAMMED: i64 = 8,
        /// Rows of an image that are computed together, at most, and at most one for four vector registers: they share weights and what their
        /// windows have in common, and one sum does not wait for the one before. (Of the time of one row at a time, 5 x 5 by channel over
        /// 14 x 14 pixels takes 0.53, 7 x 7 over 56 x 56 0.65, 3 x 3 over 28 x 28 0.67, and a pooling of 3 x 3 0.55.)
        MOST_ROWS: i64 = 6,
        /// Rows from which on they are enough to share out among threads, though several are computed together.
        MANY_ROWS: i64 = 256,
        /// Rows at an edge are written out where they are a sixteenth of the rows of the image or more.
        EDGES: i64 = 16,
        /// Statements of such windows together, at most: longer bodies are printed in parts, between which sums pass through memory.
        LONGEST_BODY: i64 = 490,
        /// Statements for two positions of the windows of neighbours: two products, and their part of what is loaded.
        OF_TWO_TAPS: i64 = 3,
    }
    unswitch {
        /// Conditions that a loop does not change and that fail separately, at most.
        MOST_CONDITIONS: usize = 2,
    }
    vectorise {
        /// How many cycles the next addition of a chain waits for the one before it.
        LATENCY: u32 = 4,
    }
    warp_specialize {
        /// Sums of a thread from which on a warpgroup fills alone: with the addresses of copies they would not fit the registers.
        MANY_SUMS: u64 = 128,
    }
    warp_rows {
        /// Registers of a thread that tiles may take together: not all are needed at the same time.
        MOST_REGISTERS: u64 = 224,
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::tile::primitives;
    use crate::tile::rules::{OF_KERNELS, OF_PLANS};

    /// A number whose policy was renamed would be printed nowhere.
    #[test]
    fn each_number_belongs_to_something() {
        let estimates = ["blocking", "contraction", "cost", "l2_reuse", "matrix", "warp_rows"];
        let rules = OF_KERNELS.iter().map(|(rule, _)| rule.name).chain(OF_PLANS.iter().map(|(rule, _)| rule.name));
        let words = primitives::words().chain(primitives::model::words());
        let known: Vec<&str> = rules.chain(words).collect();
        for n in ALL {
            assert!(estimates.contains(&n.of) || known.contains(&n.of), "{}", n.of);
            assert!(ALL.iter().filter(|o| (o.of, o.name) == (n.of, n.name)).count() == 1, "{}::{}", n.of, n.name);
        }
    }
}
