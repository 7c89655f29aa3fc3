//! The statements of Loop IR and Tile IR, each declared once.
//!
//! A row is the text of a statement: words in quotes, and between them its parts, each with a name and a [kind](super::kinds). It
//! defines the variant of [`Stmt`], the printer, the parser, and the parts that walkers see. [`For`] stands in a box, since it is large.
//!
//! The rest of a statement stands in three other places: `verify.rs` holds the rules of this statement alone, `eval/code.rs` runs it, and
//! `kernel/legalise` makes Kernel IR of it.

use super::kinds::{self, Kind, Part, PartMut};
use super::parse::{Parser, Res};
use super::print::Printer;
use super::spelled::Spelled;

/// How a statement is read: the row's words, and its parser.
pub(super) struct Row {
    /// The words in front of the first part, and behind it.
    pub head: &'static [&'static str],
    pub next: &'static [&'static str],
    /// The kinds of its parts.
    pub kinds: &'static [&'static str],
    pub parse: for<'t, 'a> fn(&mut Parser<'t, 'a>) -> Res<Stmt>,
}

/// The words behind the first of several parts.
const fn first(words: &[&'static [&'static str]]) -> &'static [&'static str] {
    match words {
        [first, ..] => first,
        [] => &[],
    }
}

/// Shows the parts of a part, if it is one that the statement makes, or not.
#[inline(always)]
fn shown<'s, K: Kind>(part: &'s K::Is, made: bool, f: &mut impl FnMut(Part<'s>)) {
    if K::MADE == made {
        K::parts(part, f);
    }
}

macro_rules! statements {
    (
        $(#[$for_doc:meta])*
        $for:ident in a box = $($for_head:literal)+
            $( ($field:ident: $field_kind:ident) $($field_tail:literal)* )+;
        $(
            $(#[$doc:meta])*
            $name:ident = $($head:literal)* $( $( ($part:ident: $kind:ident) $($tail:literal)* )+ )?;
        )+
    ) => {
        $(#[$for_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $for {
            $( pub $field: <kinds::$field_kind as Kind>::Is ),+
        }

        #[derive(Clone, Debug, PartialEq)]
        pub enum Stmt {
            $for(Box<$for>),
            $( $(#[$doc])* $name $({ $($part: <kinds::$kind as Kind>::Is),+ })? ),+
        }

        /// Shows the parts of a statement, what it makes last.
        #[inline]
        pub(super) fn each<'s>(stmt: &'s Stmt, f: &mut impl FnMut(Part<'s>)) {
            match stmt {
                Stmt::$for(l) => {
                    $( shown::<kinds::$field_kind>(&l.$field, false, f); )+
                    $( shown::<kinds::$field_kind>(&l.$field, true, f); )+
                }
                $( Stmt::$name $({ $($part),+ })? => {
                    $($( shown::<kinds::$kind>($part, false, f); )+ $( shown::<kinds::$kind>($part, true, f); )+)?
                } )+
            }
        }

        /// The same to change, in order of the text.
        #[inline]
        pub(super) fn each_mut<'s>(stmt: &'s mut Stmt, f: &mut impl FnMut(PartMut<'s>)) {
            match stmt {
                Stmt::$for(l) => { $( kinds::$field_kind::parts_mut(&mut l.$field, f); )+ }
                $( Stmt::$name $({ $($part),+ })? => { $($( kinds::$kind::parts_mut($part, f); )+)? } )+
            }
        }

        pub(super) fn print(stmt: &Stmt, p: &mut Printer<'_>) {
            match stmt {
                Stmt::$for(l) => {
                    $( p.word($for_head); )+
                    $( kinds::$field_kind::print(&l.$field, p); $( p.word($field_tail); )* )+
                }
                $( Stmt::$name $({ $($part),+ })? => {
                    $( p.word($head); )*
                    $($( kinds::$kind::print($part, p); $( p.word($tail); )* )+)?
                } )+
            }
        }

        pub(super) const ROWS: &[Row] = &[
            Row {
                head: &[$($for_head),+],
                next: first(&[$(&[$($field_tail),*]),+]),
                kinds: &[$(stringify!($field_kind)),+],
                parse: |p| {
                    $( p.expect($for_head)?; )+
                    $( let $field = kinds::$field_kind::parse(p)?; $( p.expect($field_tail)?; )* )+
                    Ok(Stmt::$for(Box::new($for { $($field),+ })))
                },
            },
            $( Row {
                head: &[$($head),*],
                next: first(&[$($(&[$($tail),*]),+)?]),
                kinds: &[$($(stringify!($kind)),+)?],
                parse: |p| {
                    $( p.expect($head)?; )*
                    $($( let $part = kinds::$kind::parse(p)?; $( p.expect($tail)?; )* )+)?
                    Ok(Stmt::$name $({ $($part),+ })?)
                },
            } ),+
        ];
    };
}

statements! {
    /// `step` is positive, and 1 for free and reduce loops.
    For in a box = "for" (axis: NewAxis) "in" (lo: End) ".." (hi: End) (step: Step) ":"
        (kind: Iterations) (place: Placed) (combine: Combining) (stream: Streaming) (contraction: Contracting) (body: Body);
    Let = (dst: New) "=" (op: Operation) (args: Operands);
    /// The expression's value, wrapped to the type of `dst`.
    Index = (dst: New) "=" "index" (ix: Index);
    /// The mask's truth as an i1.
    Test = (dst: New) "=" "test" (mask: Condition);
    /// Masked off: `other`, or 0.
    Load = (dst: New) "=" "load" (mem: Memory) (mask: Where) (other: Else) (order: Ordered) (site: AtSite);
    Store = "store" (mem: Memory) "=" (value: Value) (mask: Where) (order: Ordered) (site: AtSite);
    Read = (dst: New) "=" (buf: ReadFrom) (idx: Subscripts);
    Write = (buf: WriteTo) (idx: Subscripts) "=" (value: Value);
    /// A buffer's life begins; its contents are unspecified until written.
    Local = "local" (buf: Declared);
    Loop = "loop" ":" (body: Body);
    Break = "break";
    Continue = "continue";
    /// Ends the block.
    Return = "return";
    If = "if" (cond: Truth) ":" (then: Body) (els: Otherwise);
    /// `dst` gets the old value; masked off: `value`'s type 0.
    Rmw = (dst: New) "=" "atomic" (op: AtomicOp) (mem: Memory) "," (value: Value) (mask: Where) (order: Ordered) (site: AtSite);
    /// `dst` gets the old value; masked off: `cmp`.
    Cas = (dst: New) "=" "cas" (mem: Memory) "," (cmp: Value) "," (value: Value) (mask: Where) (order: Ordered) (site: AtSite);
    /// printf-style; each argument is a scalar or a whole tile.
    Print = "print" (format: Text) (args: Shown) (site: AtSite);
    /// Traps when false.
    Assert = "assert" (cond: Truth) "," (message: Text) (site: AtSite);
    /// The address of a module global (index into `Kernel::globals`).
    GlobalAddr = (dst: New) "=" "global" "@" (global: GlobalName);
    /// Scratch memory of this block, `bytes` long, freed when the block ends; `dst` is its address.
    Alloca = (dst: New) "=" "alloca" (bytes: Number) "align" (align: Number) (site: AtSite);
    /// Tile IR only. An operand slab brought close: `body` fills `buf` (declared here) from where the operand lives. The buffer's shape
    /// says how it lies: `[n/32, k, 32]` is panels of 32 columns, each contiguous over k.
    Stage = "stage" (buf: Declared) (filled: Filling) ":" (body: Body);
    /// Tile IR only. A hint that the cache may fetch this memory, which will be read soon. The memory need not exist, and nothing
    /// else changes.
    Prefetch = "prefetch" (mem: Memory);
}
