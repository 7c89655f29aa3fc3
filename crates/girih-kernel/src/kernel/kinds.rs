//! The kinds of parts that statements are made of: the type of a part in memory, and how the statement uses it.
//!
//! In: a statement of the table in [`super::statements`]. Out: its [`Part`]s, in order of its text. Walkers ask for
//! parts instead of matching on statements: the verifier checks definitions and uses, [`super::uniform`] joins the
//! levels of operands, [`super::observed`] follows bits. [`super::spelled`] has the text of each kind.
//!
//! ```text
//! New                                      VAL ":" ty                      a new value
//! Written, MovedVal, TakenVal, Words       VAL
//! MovedVals, CountedVals                   VAL ("," VAL)*                  the latter behind their number
//! Moved, Taken, Compared                   opnd
//! Operands                                 opnd ("," opnd)*
//! Operation                                OP                              a scalar operation: `mulf`
//! OperandTy                                                                follows from an operand
//! Index                                    ix
//! Element                                  ("element" ix)?                 which one a message names
//! Coordinates                              "[" ix ("," ix)* "]"
//! Condition                                mask
//! Where                                    ("where" mask)?                 always, where it is left out
//! Else                                     ("else" opnd)?
//! Ordered                                  order?
//! Read, Write, Combine, CompareAt, Unit,
//!   Mbarrier, Named                        place
//! Rows                                     place "," place
//! Sums                                     BUF
//! Behind                                   ("behind" BUF ("," BUF)*)?
//! InPanel                                  panel
//! LeftOperand                              left
//! InShared                                 descr
//! Hex                                      "0x" and digits
//! OfKind                                   "f16" | "tf32" | "f8f6f4" | "i8"
//! FromTensor, ToTensor, GlobalName         NAME
//! Number                                   INT
//! Unroll, Apart                            ("unroll" INT)?, ("by" INT)?    0, and 1, where it is left out
//! Expect, OfBlock, OfParam                 ("expect" INT)?, ("of" INT)?, ("param" INT)?
//! Site                                     "site" INT
//! Text                                     STRING
//! Shown                                    ("," (opnd | BUF "[" INT,* "]"))*    a scalar, or the tile that lies in a slot
//! AtomicOp                                 "and" | "or" | "xor" | "add" | "addf" | "max" | "min" | "umax" | "umin" | "xchg"
//! ShuffleKind                              "xor" | "down" | "idx"
//! Transpose                                ("trans" ("left" | "right")?)?
//! OfTiles                                  "bf16" | "u8s8"
//! OfPanel                                  operand
//! OfFragments                              operand operand?                of the left fragment, and of the right where it differs
//! FenceKind                                "init" | "async" | "global" | "registers"    shows TMA new mbarriers, or writes to
//!                                                                          shared or to global memory, or `wgmma` a
//!                                                                          thread's registers
//!                                        | "before_sync" | "after_sync"    shows other threads what this one did in tensor memory,
//!                                                                          or this one what others did there
//! High, Writes, More                       "low" | "high", "read" | "write", "more" | "fewer"
//! All                                      "all"?
//! NewAxis                                  AXIS
//! Body, Then                               "{" stmt* "}"
//! Otherwise                                ("else" "{" stmt* "}")?
//! ```
//! A walker sees of `store c[i] = x where i < n` the parts `At(c[i], Writes)`, `Moves(x)` and `Mask(i < n)`.

use super::ir::*;
use super::tcgen05::MmaKind;
use crate::num::ScalarOp;

/// A part of a statement.
#[derive(Clone, Copy)]
pub enum Part<'s> {
    /// A value that the statement defines.
    Defines(ValId),
    /// A variable, or a vector with a lane of its own, that it writes.
    Updates(ValId),
    /// An operand whose bits become bits of the values or memory that the statement defines or writes.
    Moves(Opnd),
    /// An operand that is used as a number.
    Takes(Opnd),
    /// An operand whose exact bits are shown or compared.
    Shows(Opnd),
    /// Words that a matrix unit reads as numbers.
    Feeds(ValId),
    /// A number over axes, values and the launch.
    Index(&'s Ix),
    /// A condition that decides if the statement takes effect.
    Mask(&'s Mask),
    /// Memory from an address on.
    At(&'s Address, Access),
    /// A whole slot.
    Slot(BufId, Access),
    /// Global memory through a tensor's boxes.
    Tensor(TensorId, Access),
    /// The loop that the statement opens.
    Axis(AxisId),
    Body(&'s [Stmt]),
}

/// How a statement accesses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Reads,
    Writes,
    /// Reads, and writes the result of an operation on the old value and the operand.
    Combines,
    /// Reads, compares bit by bit, and may write.
    Compares,
    /// A matrix unit reads or writes it as numbers.
    Multiplies,
    /// An mbarrier.
    Waits,
    /// Only the address counts.
    Names,
}

/// A kind of part.
pub trait Kind {
    /// The part in memory.
    type Is;
    fn parts<'s>(is: &'s Self::Is, each: &mut dyn FnMut(Part<'s>));
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $is:ty $(=> |$part:ident, $each:ident| $parts:expr)?;)+) => {
        $(
            $(#[$doc])*
            pub struct $kind;
            impl Kind for $kind {
                type Is = $is;
                kinds!(@parts $(|$part, $each| $parts)?);
            }
        )+
    };
    (@parts) => {
        fn parts<'s>(_: &'s Self::Is, _: &mut dyn FnMut(Part<'s>)) {}
    };
    (@parts |$part:ident, $each:ident| $parts:expr) => {
        fn parts<'s>($part: &'s Self::Is, $each: &mut dyn FnMut(Part<'s>)) {
            $parts
        }
    };
}

kinds! {
    /// A new value with its type.
    New: ValId => |val, each| each(Part::Defines(*val));
    /// A variable, or a vector, that exists already.
    Written: ValId => |val, each| each(Part::Updates(*val));
    Moved: Opnd => |opnd, each| each(Part::Moves(*opnd));
    MovedVal: ValId => |val, each| each(Part::Moves(Opnd::Val(*val)));
    /// Values with commas between them.
    MovedVals: Vec<ValId> => |vals, each| vals.iter().for_each(|val| each(Part::Moves(Opnd::Val(*val))));
    /// The same behind their number.
    CountedVals: Vec<ValId> => |vals, each| vals.iter().for_each(|val| each(Part::Moves(Opnd::Val(*val))));
    Taken: Opnd => |opnd, each| each(Part::Takes(*opnd));
    TakenVal: ValId => |val, each| each(Part::Takes(Opnd::Val(*val)));
    Compared: Opnd => |opnd, each| each(Part::Shows(*opnd));
    Words: ValId => |val, each| each(Part::Feeds(*val));
    /// The operands of a scalar operation, which determines how their bits are used.
    Operands: Vec<Opnd> => |opnds, each| opnds.iter().for_each(|opnd| each(Part::Moves(*opnd)));
    Operation: ScalarOp;
    /// The type that an operation is applied at, which follows from an operand.
    OperandTy: Elem;

    Index: Ix => |ix, each| each(Part::Index(ix));
    /// `element ix`, or nothing.
    Element: Option<Ix> => |ix, each| ix.iter().for_each(|ix| each(Part::Index(ix)));
    /// Indices in brackets.
    Coordinates: Vec<Ix> => |all, each| all.iter().for_each(|ix| each(Part::Index(ix)));
    Condition: Mask => |mask, each| each(Part::Mask(mask));
    /// `where mask`, or nothing where it always holds.
    Where: Mask => |mask, each| each(Part::Mask(mask));
    /// `else opnd`, or nothing.
    Else: Option<Opnd> => |other, each| other.iter().for_each(|opnd| each(Part::Moves(*opnd)));
    /// A memory order, or nothing for a weak access.
    Ordered: Order;

    Read: Address => |at, each| each(Part::At(at, Access::Reads));
    Write: Address => |at, each| each(Part::At(at, Access::Writes));
    Combine: Address => |at, each| each(Part::At(at, Access::Combines));
    CompareAt: Address => |at, each| each(Part::At(at, Access::Compares));
    Unit: Address => |at, each| each(Part::At(at, Access::Multiplies));
    Mbarrier: Address => |at, each| each(Part::At(at, Access::Waits));
    Named: Address => |at, each| each(Part::At(at, Access::Names));
    /// The two rows of a fragment of sums.
    Rows: [Address; 2] => |at, each| at.iter().for_each(|at| each(Part::At(at, Access::Multiplies)));
    Sums: BufId => |buf, each| each(Part::Slot(*buf, Access::Multiplies));
    /// `behind` and slots, or nothing.
    Behind: Vec<BufId> => |bufs, each| bufs.iter().for_each(|buf| each(Part::Slot(*buf, Access::Names)));
    InPanel: Panel => |panel, each| each(Part::At(&panel.place, Access::Multiplies));
    InShared: Described => |of, each| each(Part::At(&of.place, Access::Multiplies));
    LeftOperand: Left => |left, each| each(Part::At(left.place(), Access::Multiplies));
    FromTensor: TensorId => |tensor, each| each(Part::Tensor(*tensor, Access::Reads));
    ToTensor: TensorId => |tensor, each| each(Part::Tensor(*tensor, Access::Writes));
    /// The name of a global array.
    GlobalName: u32;

    Number: u32;
    /// A number whose bits have meanings of their own.
    Hex: u32;
    /// `unroll INT`, or nothing for 0.
    Unroll: u32;
    /// `by INT`, or nothing for 1.
    Apart: u32;
    /// `expect INT`, or nothing.
    Expect: Option<u32>;
    /// `of INT`, or nothing.
    OfBlock: Option<u32>;
    /// `param INT`, or nothing.
    OfParam: Option<u32>;
    Site: SiteId;
    /// A text in quotes.
    Text: Quoted;
    /// `, opnd` or `, slot[shape]` for each value that is printed.
    Shown: Vec<PrintArg> => |args, each| {
        for arg in args {
            each(match arg {
                PrintArg::Scalar(opnd) => Part::Shows(*opnd),
                PrintArg::Tile { slot, .. } => Part::Slot(*slot, Access::Compares),
            });
        }
    };

    AtomicOp: RmwOp;
    ShuffleKind: Shuffle;
    /// Nothing, `trans`, `trans left` or `trans right`.
    Transpose: Transposed;
    OfTiles: AmxTerms;
    OfPanel: Operand;
    OfKind: MmaKind;
    /// One type for both operands, or two.
    OfFragments: [Operand; 2];
    FenceKind: Fence;
    /// `high` or `low`.
    High: bool;
    /// `write` or `read`.
    Writes: bool;
    /// `more` or `fewer`.
    More: bool;
    /// `all`, or nothing.
    All: bool;

    NewAxis: AxisId => |axis, each| each(Part::Axis(*axis));
    /// Statements in braces.
    Body: Vec<Stmt> => |body, each| each(Part::Body(body));
    /// The same, behind which an `else` may come.
    Then: Vec<Stmt> => |body, each| each(Part::Body(body));
    /// `else` and statements in braces, or nothing.
    Otherwise: Vec<Stmt> => |body, each| each(Part::Body(body));
}
