//! The kinds of parts that statements are made of: the type of a part in memory, and what it is to the statement.
//!
//! In: a statement of the table in [`super::statements`]. Out: its [`Part`]s. Walkers ask for parts instead of matching on statements.
//! [`super::spelled`] has the text of each kind.
//!
//! ```text
//! New                      VAL ":" ty                                     a new value
//! Operation, Operands      opnd INFIX opnd                                + - * / & | ^ <<, by the declared type (float or int;
//!                                                                         `+` on pointers counts elements); == != < <= > >= by
//!                                                                         the operands' (ordered or signed; `!=` is true on NaN)
//!                        | OP "(" opnd,* ")"                              max(a, b), fma.rz.ftz(a, b, c), cmpi.lt.u(a, b)
//!                        | dtype "(" opnd ")"                             plain conversion: rounds to nearest, saturates, signed
//!                        | const                                          a copy of the constant
//! Value, Truth             opnd                                           of the type of the elements, an i1
//! Else                     ("else" opnd)?
//! Index, End               ix                                             an end of a range has a sum in brackets
//! Step                     ("step" ix)?                                   1, where it is left out
//! ReadFrom, WriteTo        BUF
//! Subscripts               ("[" ix,* "]")?                                no brackets where the rank is 0
//! Declared                 BUF ":" ty ("[" INT,* "]" space?)?
//! Memory                   VAL ("as" dtype)? "[" ix "]"                   in elements; "as" where the pointer's own type differs
//! Condition                mask
//! Where                    ("where" mask)?                                always, where it is left out
//! Ordered                  ("relaxed" | "acquire" | "release" | "acq_rel")?     otherwise weak
//! AtSite                   ("!" (NAME | STRING))?                         the source operation: !load_ptr_tko
//! AtomicOp                 "and" | "or" | "xor" | "add" | "addf" | "max" | "min" | "umax" | "umin" | "xchg"
//! GlobalName               NAME
//! Number                   INT
//! Text                     STRING
//! Shown                    ("," (opnd | BUF))*                            a scalar, or a whole tile
//! Filling                  ("async" | "tensor")?                          tile IR
//! NewAxis                  AXIS
//! Iterations               "free" | "reduce" | "serial"
//! Placed                   place?                                         tile IR
//! Combining                ("combine" OP "(" BUF,* ")" "from" const ("x" INT)?)?
//! Streaming                ("stream" "score=" VAL "value=" VAL "greatest=" BUF "total=" BUF "acc=" BUF)?
//! Contracting              ("contraction" "m=" role "n=" role "k=" role "a=" VAL "b=" VAL "acc=" BUF)?
//! Body                     indented statements, or "pass"
//! Otherwise                ("else" ":" body)?
//! ```
//! A walker sees of `store c[i] = x where i < n` the parts `UseVal(c)`, `Ix(i)`, `Opnd(x)`, `Ix(i)` and `Ix(n)`.

use super::ir::*;
use crate::num::ScalarOp;

macro_rules! part {
    ($name:ident [$($mt:tt)?]) => {
        /// One part that a statement mentions.
        #[derive(Debug)]
        pub enum $name<'s> {
            DefVal(&'s $($mt)? ValId),
            /// A value used as such: the base of a memory access, a mask's value.
            UseVal(&'s $($mt)? ValId),
            Opnd(&'s $($mt)? Opnd),
            Ix(&'s $($mt)? Ix),
            DefAxis(&'s $($mt)? AxisId),
            /// An axis a contraction names.
            RoleAxis(&'s $($mt)? AxisId),
            /// A value a contraction names.
            RoleVal(&'s $($mt)? ValId),
            /// A buffer that a combine, a contraction or a register tile names.
            RoleBuf(&'s $($mt)? BufId),
            DefBuf(&'s $($mt)? BufId),
            ReadBuf(&'s $($mt)? BufId),
            WriteBuf(&'s $($mt)? BufId),
            /// A whole mask; [`super::walk::parts`] gives its conditions and values instead.
            Mask(&'s $($mt)? Mask),
            Site(&'s $($mt)? SiteId),
            Body(&'s $($mt)? Vec<Stmt>),
        }
    };
}

part!(Part []);
part!(PartMut [mut]);

/// A kind of part.
pub trait Kind {
    /// The part in memory.
    type Is;
    /// It is defined or written by the statement: other parts are seen before it.
    const MADE: bool = false;
    fn parts<'s>(_: &'s Self::Is, _: &mut impl FnMut(Part<'s>)) {}
    fn parts_mut<'s>(_: &'s mut Self::Is, _: &mut impl FnMut(PartMut<'s>)) {}
}

/// `KIND, ..: the type in memory => uses or makes its parts`.
macro_rules! kinds {
    ($($($kind:ident),+: $is:ty $(=> $role:ident |$part:ident, $each:ident| $parts:expr)?;)+) => {
        $( kinds!(@all $($kind)+; $is; { $($role |$part, $each| $parts)? }); )+
    };
    (@all $($kind:ident)+; $is:ty; $parts:tt) => {
        $( kinds!(@one $kind; $is; $parts); )+
    };
    (@one $kind:ident; $is:ty; {}) => {
        pub struct $kind;
        impl Kind for $kind {
            type Is = $is;
        }
    };
    (@one $kind:ident; $is:ty; { $role:ident |$part:ident, $each:ident| $parts:expr }) => {
        pub struct $kind;
        impl Kind for $kind {
            type Is = $is;
            const MADE: bool = kinds!(@$role);
            fn parts<'s>($part: &'s Self::Is, $each: &mut impl FnMut(Part<'s>)) {
                $parts
            }
            fn parts_mut<'s>($part: &'s mut Self::Is, $each: &mut impl FnMut(PartMut<'s>)) {
                use PartMut as Part;
                $parts
            }
        }
    };
    (@uses) => { false };
    (@makes) => { true };
}

// A part is given by reference, or by mutable reference: each expression does for both.
kinds! {
    New: ValId => makes |val, each| each(Part::DefVal(val));
    Operation: ScalarOp;
    Operands: Vec<Opnd> => uses |opnds, each| for opnd in opnds {
        each(Part::Opnd(opnd));
    };
    Value, Truth: Opnd => uses |opnd, each| each(Part::Opnd(opnd));
    Else: Option<Opnd> => uses |other, each| if let Some(opnd) = other {
        each(Part::Opnd(opnd));
    };
    Index, End, Step: Ix => uses |ix, each| each(Part::Ix(ix));
    ReadFrom: BufId => uses |buf, each| each(Part::ReadBuf(buf));
    WriteTo: BufId => makes |buf, each| each(Part::WriteBuf(buf));
    Subscripts: Vec<Ix> => uses |idx, each| for ix in idx {
        each(Part::Ix(ix));
    };
    Declared: BufId => makes |buf, each| each(Part::DefBuf(buf));
    Memory: Mem => uses |mem, each| {
        let Mem { base, index, .. } = mem;
        each(Part::UseVal(base));
        each(Part::Ix(index));
    };
    Condition, Where: Mask => uses |mask, each| each(Part::Mask(mask));
    // The conditions and values of a mask.
    Tested: Mask => uses |mask, each| {
        let Mask { conds, vals } = mask;
        for Cond { lhs, rhs, .. } in conds {
            each(Part::Ix(lhs));
            each(Part::Ix(rhs));
        }
        for val in vals {
            each(Part::UseVal(val));
        }
    };
    Ordered: Order;
    AtSite: SiteId => uses |site, each| each(Part::Site(site));
    AtomicOp: RmwOp;
    GlobalName: u32;
    Number: u64;
    Text: String;
    Shown: Vec<PrintArg> => uses |args, each| for arg in args {
        match arg {
            PrintArg::Scalar(opnd) => each(Part::Opnd(opnd)),
            PrintArg::Buf(buf) => each(Part::ReadBuf(buf)),
        }
    };
    Filling: Filled;
    NewAxis: AxisId => makes |axis, each| each(Part::DefAxis(axis));
    Iterations: LoopKind;
    Placed: Place;
    Combining: Option<Combine> => uses |combine, each| if let Some(Combine { accs, .. }) = combine {
        for acc in accs {
            each(Part::RoleBuf(acc));
        }
    };
    Streaming: Option<Stream> => uses |stream, each| {
        if let Some(Stream { score, value, greatest, total, acc }) = stream {
            [score, value].into_iter().for_each(|val| each(Part::RoleVal(val)));
            [greatest, total, acc].into_iter().for_each(|buf| each(Part::RoleBuf(buf)));
        }
    };
    Contracting: Option<Contraction> => uses |roles, each| if let Some(Contraction { m, n, k, a, b, acc }) = roles {
        [m, n, k].into_iter().flatten().for_each(|axis| each(Part::RoleAxis(axis)));
        [a, b].into_iter().for_each(|val| each(Part::RoleVal(val)));
        each(Part::RoleBuf(acc));
    };
    Body, Otherwise: Vec<Stmt> => uses |body, each| each(Part::Body(body));
}
