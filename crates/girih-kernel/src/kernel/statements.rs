//! The statements of Kernel IR, each declared once.
//!
//! A row is the text of a statement: words in quotes, and between them its parts, each with a name and a
//! [kind](super::kinds). After the arrow stand the kind of work, for counting, and the threads that run the statement
//! ([`Runs`]; absent where any kernel may have it). A row defines the variant of [`Stmt`], the printer, the parser, its
//! parts for every walker, and the definitions and uses that the verifier checks.
//!
//! The rest of a statement stands in four other places: `legalise` makes it, `machine/compile.rs` runs it, an emitter
//! of `emit/` prints it, and `verify.rs` holds the rules of this statement alone.

use super::kinds::{self, Kind, Part};
use super::parse::{Cursor, Parser, Res};
use super::print::Printer;
use super::spelled::Spelled;

/// The kind of work that a statement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Arithmetic,
    ControlFlow,
    /// In the memory of its address: global, shared or scratch.
    Load,
    Store,
    Atomic,
    Barrier,
    AsyncCopy,
    Shuffle,
    Matrix,
    Diagnostic,
}

/// Which threads run a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// Each on its own, in every kernel.
    Any,
    /// The thread of a kernel of one.
    Alone,
    /// Each on its own, in a block of several.
    Threads,
    /// All lanes of a warp together.
    Warp,
    /// All threads of a warpgroup together.
    Group,
    /// All threads of a block together.
    Block,
    /// All threads of a cluster together.
    Cluster,
}

/// How a statement is read: the row's words, and its parser.
pub(super) struct Row {
    /// The words in front of the first part, and behind it.
    pub head: &'static [&'static str],
    pub next: &'static [&'static str],
    /// The kinds of its parts.
    pub kinds: &'static [&'static str],
    pub parse: for<'a> fn(&mut Parser<'a>, &mut Cursor<'a>) -> Res<Stmt>,
}

impl Row {
    /// Returns true if the statement begins with a part of this kind.
    pub fn begins(&self, kind: &str) -> bool {
        self.head.is_empty() && self.kinds.first() == Some(&kind)
    }
}

/// The words behind the first of several parts.
const fn first(words: &[&'static [&'static str]]) -> &'static [&'static str] {
    match words {
        [first, ..] => first,
        [] => &[],
    }
}

macro_rules! statements {
    ($(
        $(#[$doc:meta])*
        $name:ident = $($head:literal)*
            $( $( ($(#[$part_doc:meta])* $part:ident: $kind:ident) $($tail:literal)* )+ )?
            => $work:ident $(by $runs:ident)?;
    )+) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum Stmt {
            $( $(#[$doc])* $name $({ $($(#[$part_doc])* $part: <kinds::$kind as Kind>::Is),+ })? ),+
        }

        impl Stmt {
            /// Its parts, in order of the text.
            pub fn parts<'s>(&'s self, each: &mut dyn FnMut(Part<'s>)) {
                match self {
                    $( Stmt::$name $({ $($part),+ })? => { $($( kinds::$kind::parts($part, each); )+)? } )+
                }
            }

            pub fn work(&self) -> Work {
                match self {
                    $( Stmt::$name { .. } => Work::$work, )+
                }
            }

            pub fn runs(&self) -> Runs {
                match self {
                    $( Stmt::$name { .. } => statements!(@runs $($runs)?), )+
                }
            }

            /// The words that tell it from others: `wgmma wait`.
            pub fn words(&self) -> String {
                let (head, next): (&[&str], &[&str]) = match self {
                    $( Stmt::$name { .. } => (&[$($head),*], first(&[$($(&[$($tail),*]),+)?])), )+
                };
                let defined = || next.iter().copied().filter(|word| *word != "=").collect();
                let words: Vec<&str> = if head.is_empty() { defined() } else { head.to_vec() };
                words.join(" ")
            }

            pub(super) fn print(&self, p: &mut Printer<'_>) {
                match self {
                    $(
                        Stmt::$name $({ $($part),+ })? => {
                            $( p.word($head); )*
                            $($( kinds::$kind::print($part, p); $( p.word($tail); )* )+)?
                        }
                    )+
                }
            }
        }

        pub(super) const ROWS: &[Row] = &[$(
            Row {
                head: &[$($head),*],
                next: first(&[$($(&[$($tail),*]),+)?]),
                kinds: &[$($(stringify!($kind)),+)?],
                parse: |_p, c| {
                    $( c.expect($head)?; )*
                    $($( let $part = kinds::$kind::parse(_p, c)?; $( c.expect($tail)?; )* )+)?
                    Ok(Stmt::$name $({ $($part),+ })?)
                },
            }
        ),+];
    };
    (@runs) => { Runs::Any };
    (@runs $runs:ident) => { Runs::$runs };
}

statements! {
    /// A mutable variable with its first value.
    Var = "var" (var: New) "=" (init: Moved) => Arithmetic;
    Set = (var: Written) "=" (value: Moved) => Arithmetic;
    /// A scalar operation, lane by lane. `ty`: the type of the operands.
    Let = (dst: New) "=" (op: Operation) (ty: OperandTy) (args: Operands) => Arithmetic;
    Splat = (dst: New) "=" "splat" (value: Moved) => Arithmetic;
    /// Lane l holds `base + l*step`, wrapped to the type of `dst`.
    Ramp = (dst: New) "=" "ramp" (base: Index) "step" (step: Index) => Arithmetic;
    Index = (dst: New) "=" "index" (ix: Index) => Arithmetic;
    Test = (dst: New) "=" "test" (mask: Condition) => Arithmetic;
    /// `other`: the value where the mask does not hold; `None` is 0.
    Load = (dst: New) "=" "load" (place: Read) (mask: Where) (other: Else) (order: Ordered) => Load;
    /// Asks the cache to fetch global memory that will be read soon. The address need not be valid.
    Prefetch = "prefetch" (place: Named) => Load by Alone;
    /// Reads an element of a shared slot of another block of the cluster. `of`: that block, by its number in the
    /// cluster.
    LoadOf = (dst: New) "=" "load" (place: Read) "of" (of: Number) => Load by Threads;
    Store = "store" (place: Write) "=" (value: Moved) (mask: Where) (order: Ordered) => Store;
    Lane = (dst: New) "=" "lane" (vector: MovedVal) "[" (lane: Index) "]" => Arithmetic;
    SetLane = "lane" (vector: Written) "[" (lane: Index) "]" "=" (value: Moved) => Arithmetic;
    /// Groups of `width` lanes of two vectors in turn. Low: lanes i with i / width even are those of `a`, the others
    /// hold the lanes of `b` from `width` before. High: the others are those of `b`, and the even groups hold the lanes
    /// of `a` from `width` after. Rounds of these transpose a square of lanes.
    Merge = (dst: New) "=" "merge" (high: High) (width: Number) (a: MovedVal) "," (b: MovedVal) => Arithmetic;
    /// Loads the lanes `from..to` of the vector at a place, and takes those beside them from `other`: nothing is read
    /// there. The bounds may lie outside the vector.
    LoadLanes = (dst: New) "=" "some" (from: Index) ".." (to: Index) "load" (place: Read) "else" (other: Moved) => Load;
    /// Stores only the lanes `from..to`.
    StoreLanes = "some" (from: Index) ".." (to: Index) "store" (place: Write) "=" (value: MovedVal) => Store;
    /// Lane i is element `i*step` of the elements that the parts cover. There are `step` parts, vectors loaded side by
    /// side; each begins with the last lane of the one before, so that nothing is read beyond the last element.
    Strided = (dst: New) "=" "every" (parts: CountedVals) => Arithmetic;
    /// The elements of several vectors in turn: the `part`th vector of them, lane i by [`super::ir::interleaved`]. The
    /// converse of `Strided`.
    Interleave = (dst: New) "=" "interleave" (part: Number) "of" (parts: MovedVals) => Arithmetic;
    /// Combines the lanes by halving.
    Reduce = (dst: New) "=" "reduce" (op: Operation) (vector: MovedVal) => Arithmetic;
    /// True where every lane of a mask is on.
    All = (dst: New) "=" "all" (vector: TakenVal) => Arithmetic;
    /// `unroll`: how often the C compiler is told to unroll; 0 leaves it to decide.
    For = "for" (axis: NewAxis) "in" (lo: Index) ".." (hi: Index) "step" (step: Index) (unroll: Unroll)
        (body: Body) => ControlFlow;
    Loop = "loop" (body: Body) => ControlFlow;
    Break = "break" => ControlFlow;
    Continue = "continue" => ControlFlow;
    /// Goes on to the next block.
    Return = "return" => ControlFlow;
    If = "if" (mask: Condition) (then: Then) (els: Otherwise) => ControlFlow;
    Rmw = (dst: New) "=" "rmw" (op: AtomicOp) (place: Combine) "," (value: Moved) (mask: Where) (order: Ordered) => Atomic;
    Cas = (dst: New) "=" "cas" (place: CompareAt) "," (cmp: Compared) "," (value: Compared) (mask: Where)
        (order: Ordered) => Atomic;
    /// Waits for all threads of the block; their writes before it are seen behind it.
    Barrier = "barrier" => Barrier by Block;
    /// Waits for the first `count` threads of the block, whole warps; no other thread may run it.
    BarrierFirst = "barrier" "first" (count: Number) => Barrier by Warp;
    /// Waits for all threads of the cluster.
    ClusterBarrier = "barrier" "cluster" => Barrier by Cluster;
    /// Waits for all lanes of the warp.
    SyncWarp = "syncwarp" => Barrier by Warp;
    /// The value that another lane of the warp has; all lanes take part.
    Shuffle = (dst: New) "=" "shuffle" (kind: ShuffleKind) (value: MovedVal) "," (by: Taken) => Shuffle by Warp;
    /// Loads matrices of 8 rows of 16 bytes from shared memory, one for each word of the value. Lane `8*i + r` gives
    /// the place of row r of matrix i. Lane l gets the word `l%4` of row `l/4` of each matrix;
    /// [`super::ir::Transposed`] says what it gets of a transposed one.
    LoadMatrix = (dst: New) "=" "ldmatrix" (transposed: Transpose) (place: Read) => Load by Warp;
    /// Adds the product of a 16 x k and a k x 8 matrix to a 16 x 8 matrix; k is [`super::ir::Operand::terms`]. Lane l
    /// has the elements `l%4*2` and the next of row `l/4` at the first place, `apart` elements from each other, and of
    /// row `l/4 + 8` at the second. `a` is four words of each lane and `b` two, as [`Stmt::LoadMatrix`] gives them: of
    /// `a` the left halves of the rows 0 to 7 and 8 to 15, then the right ones, where a half has 16 bytes; of `b` the
    /// upper half and the lower one, by columns.
    ///
    /// Here terms are added one after the other, each sum rounded. A GPU adds in another order, and may cut off
    /// instead.
    Mma = "mma" (of: OfFragments) (acc: Rows) (apart: Apart) "add" (a: Words) "," (b: Words) => Matrix by Warp;
    /// Fills one of a processor's eight tiles, which have 16 rows of 16 words of four bytes. `by`: elements from a row
    /// to the next.
    AmxLoad = "tile" (tile: Number) "load" (place: Unit) "by" (by: Index) => Matrix by Alone;
    AmxStore = "tile" (tile: Number) "store" (place: Unit) "by" (by: Index) => Matrix by Alone;
    /// Adds the product of two tiles to the 16 x 16 sums of a third: word k of row i of `a` by word j of row k of `b`,
    /// for all k in order, as `dot2f` or `dot4` multiply words.
    AmxDot = "tile" (sums: Number) "add" (of: OfTiles) (a: Number) "," (b: Number) => Matrix by Alone;
    /// Begins to add the product of a 64 x k and a k x n matrix to a 64 x n matrix; k is [`super::ir::Operand::terms`],
    /// and n follows from the array: each of 128 threads has n/2 elements of it. Thread t has rows `t//32*16 + t%32//4`
    /// and eight below it, one behind the other, and of each row the columns `j*8 + t%4*2` and the next for all j. The
    /// panels are read, and the array is changed, at any time until a wait covers the product; until then the words of a left
    /// operand in registers stay as they are.
    Wgmma = "wgmma" (of: OfPanel) (acc: Sums) "add" (a: LeftOperand) "," (b: InPanel) => Matrix by Group;
    /// Closes the group of products that the warp has begun since the last one.
    WgmmaCommit = "wgmma" "commit" => Barrier by Group;
    /// Waits until at most `left` groups of products are in flight, the newest; the array may be used behind it. `behind`:
    /// arrays of the thread whose elements are computed before the wait, while products go on; a compiler would compute
    /// them where they are needed.
    WgmmaWait = "wgmma" "wait" (left: Number) (acc: Sums) (behind: Behind) => Barrier by Group;
    /// Allocates columns of tensor memory, which has 128 lanes of four bytes in each, and stores the address of the first: the lane
    /// in its upper 16 bits, the column in the lower ones. `columns`: a power of two from 32 to 512. The warp waits until the
    /// multiprocessor has as many. One warp of a block allocates.
    Tcgen05Alloc = "tcgen05" "alloc" (to: Write) "columns" (columns: Number) => Barrier by Warp;
    /// The block allocates nothing more: others may.
    Tcgen05Relinquish = "tcgen05" "relinquish" => Barrier by Warp;
    /// Gives back columns that were allocated. A block gives back all of them before it ends.
    Tcgen05Dealloc = "tcgen05" "dealloc" (at: Index) "columns" (columns: Number) => Barrier by Warp;
    /// Begins to multiply two operands in shared memory, as the numbers of the instruction and of the operands say
    /// ([`super::tcgen05`]), and to add the product to what the columns of tensor memory from `sums` on have, or to replace that where
    /// the condition does not hold. Row i of the product is in lane i. Operands are read, and sums are changed, at any time until
    /// an mbarrier has counted a commit of the thread; products of one thread follow each other.
    Tcgen05Mma = "tcgen05" "mma" (kind: OfKind) "to" (sums: Index) "=" (a: InShared) "," (b: InShared) "by"
        (instruction: Hex) "add" (add: Where) => Matrix by Threads;
    /// Lets an mbarrier count one arrival when all products that the thread has begun have ended.
    Tcgen05Commit = "tcgen05" "commit" (on: Mbarrier) => Barrier by Threads;
    /// Begins to load lanes of tensor memory into an array with an element for each column, in which each thread has elements of
    /// four rows, one row behind the other. `at`: the first of the warp's 32 lanes, and the first column. Thread l of the warp has
    /// rows `l//4`, 8, 16 and 24 below it, and of each row the columns `j*8 + l%4*2` and the next for all j.
    Tcgen05Load = "tcgen05" "load" (acc: Sums) "from" (at: Index) => Load by Warp;
    /// Waits until loads of the warp into the array have ended.
    Tcgen05Wait = "tcgen05" "wait" (acc: Sums) => Barrier by Warp;
    /// Begins to copy 4, 8 or 16 bytes from global to shared memory; where the mask does not hold, it writes zeros and
    /// reads nothing. The bytes are there when the thread has waited for their group, and for other threads behind a
    /// barrier that follows.
    CopyAsync = "copy" "async" (to: Write) "=" (from: Read) "bytes" (bytes: Number) (mask: Where) => AsyncCopy by Threads;
    /// Closes the group of copies that the thread has begun since the last one.
    Commit = "commit" => AsyncCopy by Threads;
    /// Waits until at most `left` groups of the thread are in flight, the newest.
    WaitGroups = "wait" "groups" (left: Number) => AsyncCopy by Threads;
    /// Begins to copy the box of a tensor whose first element is at `from` to a shared slot, by TMA. Its bytes count on
    /// an mbarrier as they land; elements outside the tensor are 0. `all`: to every block of the cluster, whose own
    /// mbarrier counts the bytes it gets.
    TmaLoad = "copy" "tensor" (to: Write) "=" (tensor: FromTensor) (from: Coordinates) "on" (on: Mbarrier)
        (all: All) => AsyncCopy by Threads;
    /// Begins to copy a shared slot from `from` on to the box of a tensor whose first element is at `to`, by TMA;
    /// elements outside the tensor are left out. Shared memory is read at any time until a wait covers the copy.
    /// Nothing in the kernel can know when global memory has the elements.
    TmaStore = "copy" "tensor" (tensor: ToTensor) (to: Coordinates) "=" (from: Read) => AsyncCopy by Threads;
    /// Closes the group of boxes that the thread has begun to store since the last one.
    StoreCommit = "copy" "commit" => AsyncCopy by Threads;
    /// Waits until at most `left` of these groups of the thread still read shared memory, the newest.
    StoreWait = "copy" "wait" (left: Number) => AsyncCopy by Threads;
    /// Makes an mbarrier. Each of its phases ends after `count` arrivals and when the bytes that it expects have come.
    InitBarrier = "init" (on: Mbarrier) "count" (count: Number) => Barrier by Threads;
    /// Arrives; before that, `bytes` are added to those that the phase expects. `of`: the block of the cluster whose
    /// mbarrier it is; `None` is the thread's own.
    Arrive = "arrive" (on: Mbarrier) (bytes: Expect) (of: OfBlock) => Barrier by Threads;
    /// Waits until a phase of this parity has ended: phases are numbered from 0, and the one before the first has
    /// ended.
    WaitPhase = "wait" (on: Mbarrier) "parity" (parity: Index) => Barrier by Threads;
    Fence = "fence" (kind: FenceKind) => Barrier by Threads;
    /// Gives each thread of the warpgroup `count` registers from here on: a multiple of 8 from 24 to 256. Where it had
    /// fewer, the warpgroup waits until others have given up the rest. Values stay as they are.
    Registers = "registers" (more: More) (count: Number) => Barrier by Group;
    /// Leaves the kernel when the run is to stop.
    Poll = "poll" => ControlFlow;
    /// Lets other blocks run.
    Yield = "yield" (site: Site) => ControlFlow;
    /// Prints as [`crate::num::printf`] formats the arguments.
    Print = "print" (format: Text) (args: Shown) (site: Site) => Diagnostic;
    /// Traps with the message where the condition does not hold.
    Assert = "assert" (cond: Taken) "," (message: Text) (element: Element) (site: Site) => Diagnostic;
    /// Traps unless `count` elements from the place lie in a live region; `param` where the address is that
    /// parameter's.
    Check = "check" (write: Writes) (place: Named) "count" (count: Number) (param: OfParam) (element: Element)
        (site: Site) (mask: Where) => Diagnostic;
    /// The address of a global, by its place in [`super::ir::Kernel::globals`].
    GlobalAddr = (dst: New) "=" "global" "@" (global: GlobalName) => Arithmetic;
    /// The address of scratch memory at a byte offset.
    Scratch = (dst: New) "=" "scratch" (offset: Index) => Arithmetic;
    /// The address of the block's shared memory at a byte offset, the same for all of its threads.
    SharedAddr = (dst: New) "=" "shared" (offset: Index) => Arithmetic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::parse::parse;

    #[test]
    fn the_page_of_kinds_has_every_kind() {
        let source = include_str!("kinds.rs");
        let header: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let words: Vec<&str> = header.iter().flat_map(|line| line.split([' ', ','])).collect();
        for kind in ROWS.iter().flat_map(|row| row.kinds) {
            assert!(words.contains(kind), "{kind} has no line in the header of kinds.rs");
        }
    }

    #[test]
    fn only_its_parts_tell_statements_of_the_same_words_apart() {
        let words = |row: &Row| match row.head {
            [] => format!("{} {}", row.kinds.first().unwrap(), row.next.join(" ")),
            head => head.join(" "),
        };
        let mut words: Vec<String> = ROWS.iter().map(words).collect();
        words.sort();
        let same: Vec<&String> = words.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
        assert_eq!(same, ["New = load", "copy tensor", "tile", "tile"], "these rows are tried one after the other");
    }

    #[test]
    fn a_line_that_no_row_reads_says_what_was_expected_there() {
        let of =
            |line: &str| parse(&format!("kernel k(o: ptr<f32>) scratch 0 {{\n  {line}\n}}\n")).unwrap_err().message;
        assert_eq!(of("stroe o[0] = 1.0:f32"), "expected a statement, found `stroe`; did you mean `store`?");
        let found = of("tcgen05 comit free[0]");
        assert_eq!(found, "expected a statement, found `tcgen05 comit`; did you mean `tcgen05 commit`?");
        assert_eq!(of("x: f32 = load o[0] off 3"), "expected the end of the line, found `off`");
        assert_eq!(of("x: f32 = lode o[0]"), "unknown operation `lode`");
        assert_eq!(of("wait o[0] party 1"), "expected `parity`, found `party`");
        assert_eq!(of("loop {"), "the text ends before the kernel does");
    }
}
