//! The text of each [kind](super::kinds) of part, both ways: how it prints, and how it is read back.
//!
//! ```text
//! Where     where i < n          nothing, where the mask always holds
//! Apart     by 2                 nothing, for 1
//! ```
//! Invariant: what a kind prints, it reads back as the same part.

use super::ir::*;
use super::kinds::*;
use super::parse::{Cursor, Parser, Res};
use super::print::Printer;
use super::tcgen05::MmaKind;
use crate::loops::print::{ORDERS, RMWS, of_word, word_of};
use crate::num::DType;
use crate::num::spell::{Class, parse_op, spell};

/// A kind with its text.
pub(super) trait Spelled: Kind {
    fn print(is: &Self::Is, p: &mut Printer<'_>);
    fn parse<'a>(p: &mut Parser<'a>, c: &mut Cursor<'a>) -> Res<Self::Is>;
}

/// `KIND: its text by a printer; how a parser reads it at a cursor`.
macro_rules! spelled {
    ($($kind:ident: |$is:ident, $p:ident| $print:expr; |$q:ident, $c:ident| $parse:expr;)+) => {
        $(
            impl Spelled for $kind {
                fn print($is: &Self::Is, $p: &mut Printer<'_>) {
                    let text: String = $print;
                    $p.word(&text);
                }
                fn parse<'a>($q: &mut Parser<'a>, $c: &mut Cursor<'a>) -> Res<Self::Is> {
                    $parse
                }
            }
        )+
    };
}

/// Kinds that one of some words says.
macro_rules! worded {
    ($($kind:ident: $table:expr;)+) => {
        spelled! {
            $($kind: |is, _p| word_of(&$table, is).to_string(); |_p, c| c.one_of(&$table);)+
        }
    };
}

/// Numbers behind a word, which is left out with the number that holds without it.
macro_rules! defaulted {
    ($($kind:ident: $word:literal, $default:literal;)+) => {
        spelled! {
            $($kind: |is, _p| if *is == $default { String::new() } else { format!("{} {is}", $word) };
            |_p, c| if c.eat($word) { c.int() } else { Ok($default) };)+
        }
    };
}

/// The same where there may be none.
macro_rules! optional {
    ($($kind:ident: $word:literal;)+) => {
        spelled! {
            $($kind: |is, _p| is.map_or(String::new(), |n| format!("{} {n}", $word));
            |_p, c| if c.eat($word) { c.int().map(Some) } else { Ok(None) };)+
        }
    };
}

worded! {
    AtomicOp: RMWS;
    ShuffleKind: [("xor", Shuffle::Xor), ("down", Shuffle::Down), ("idx", Shuffle::Idx)];
    OfTiles: AmxTerms::WORDS;
    OfPanel: Operand::WORDS;
    OfKind: MmaKind::WORDS;
    FenceKind: FENCES;
    High: [("low", false), ("high", true)];
    Writes: [("read", false), ("write", true)];
    More: [("more", true), ("fewer", false)];
}

const FENCES: [(&str, Fence); 6] = [
    ("init", Fence::Init),
    ("async", Fence::Async),
    ("global", Fence::Global),
    ("registers", Fence::Registers),
    ("before_sync", Fence::BeforeSync),
    ("after_sync", Fence::AfterSync),
];

defaulted! {
    Unroll: "unroll", 0;
    Apart: "by", 1;
}

optional! {
    Expect: "expect";
    OfBlock: "of";
    OfParam: "param";
}

spelled! {
    New: |val, p| p.typed(*val); |p, c| p.define(c);
    Written: |val, p| p.val(*val).to_string(); |p, c| p.val(c.next());
    Moved: |opnd, p| p.opnd(opnd); |p, c| p.opnd(c);
    MovedVal: |val, p| p.val(*val).to_string(); |p, c| p.val(c.next());
    Taken: |opnd, p| p.opnd(opnd); |p, c| p.opnd(c);
    TakenVal: |val, p| p.val(*val).to_string(); |p, c| p.val(c.next());
    Compared: |opnd, p| p.opnd(opnd); |p, c| p.opnd(c);
    Words: |val, p| p.val(*val).to_string(); |p, c| p.val(c.next());
    MovedVals: |vals, p| p.joined(vals, |val| p.val(*val).to_string()); |p, c| c.separated(|c| p.val(c.next()));
    CountedVals: |vals, p| format!("{} {}", vals.len(), p.joined(vals, |val| p.val(*val).to_string()));
    |p, c| {
        let count: usize = c.int()?;
        let vals = c.separated(|c| p.val(c.next()))?;
        match vals.len() == count {
            true => Ok(vals),
            false => Err(format!("expected {count} values, found {}", vals.len())),
        }
    };
    Operands: |opnds, p| p.joined(opnds, |opnd| p.opnd(opnd)); |p, c| c.separated(|c| p.opnd(c));
    Operation: |op, _p| spell(*op, Class::Any).to_string();
    |_p, c| {
        let word = c.next();
        parse_op(word, Class::Any).ok_or(format!("unknown operation `{word}`"))
    };
    // The parser finds it when the operands are read.
    OperandTy: |_ty, _p| String::new(); |_p, _c| Ok(Elem::Num(DType::I1));

    Index: |ix, p| p.ix(ix); |p, c| p.ix(c);
    Element: |ix, p| ix.as_ref().map_or(String::new(), |ix| format!("element {}", p.ix(ix)));
    |p, c| if c.eat("element") { p.ix(c).map(Some) } else { Ok(None) };
    Coordinates: |all, p| format!("[{}]", p.joined(all, |ix| p.ix(ix))); |p, c| p.list(c, ["[", "]"], |p, c| p.ix(c));
    Condition: |mask, p| p.mask(mask); |p, c| p.mask(c);
    Where: |mask, p| if mask.is_always() { String::new() } else { format!("where {}", p.mask(mask)) };
    |p, c| if c.eat("where") { p.mask(c) } else { Ok(Mask::default()) };
    Else: |other, p| other.as_ref().map_or(String::new(), |opnd| format!("else {}", p.opnd(opnd)));
    |p, c| if c.eat("else") { p.opnd(c).map(Some) } else { Ok(None) };
    Ordered: |order, _p| if *order == Order::Weak { String::new() } else { word_of(&ORDERS, order).to_string() };
    |_p, c| {
        let order = of_word(&ORDERS, c.peek());
        order.inspect(|_| _ = c.next());
        Ok(order.unwrap_or(Order::Weak))
    };

    Read: |at, p| p.place(at); |p, c| p.place(c);
    Write: |at, p| p.place(at); |p, c| p.place(c);
    Combine: |at, p| p.place(at); |p, c| p.place(c);
    CompareAt: |at, p| p.place(at); |p, c| p.place(c);
    Unit: |at, p| p.place(at); |p, c| p.place(c);
    Mbarrier: |at, p| p.place(at); |p, c| p.place(c);
    Named: |at, p| p.place(at); |p, c| p.place(c);
    Rows: |at, p| p.joined(at, |at| p.place(at));
    |p, c| {
        let low = p.place(c)?;
        c.expect(",")?;
        Ok([low, p.place(c)?])
    };
    Sums: |buf, p| p.slot(*buf).to_string(); |p, c| p.slot(c.next());
    Behind: |bufs, p| match bufs.is_empty() {
        true => String::new(),
        false => format!("behind {}", p.joined(bufs, |buf| p.slot(*buf).to_string())),
    };
    |p, c| if c.eat("behind") { c.separated(|c| p.slot(c.next())) } else { Ok(vec![]) };
    InPanel: |panel, p| p.panel(panel); |p, c| p.panel(c);
    InShared: |of, p| format!("{} descriptor {:#x}", p.place(&of.place), of.number); |p, c| {
        let place = p.place(c)?;
        c.expect("descriptor")?;
        Ok(Described { place, number: c.hex()? })
    };
    LeftOperand: |left, p| p.left(left); |p, c| p.left(c);
    FromTensor: |tensor, p| p.tensor(*tensor).to_string(); |p, c| p.tensor(c.next());
    ToTensor: |tensor, p| p.tensor(*tensor).to_string(); |p, c| p.tensor(c.next());
    GlobalName: |global, p| p.global(*global).to_string(); |p, c| p.global(c.next());

    Hex: |n, _p| format!("{n:#x}"); |_p, c| {
        let number = c.hex()?;
        u32::try_from(number).map_err(|_| format!("expected a number of 32 bits, found {number:#x}"))
    };
    Number: |n, _p| n.to_string(); |_p, c| c.int();
    Site: |site, _p| format!("site {}", site.0); |_p, c| c.site();
    Text: |text, _p| text.to_string(); |_p, c| c.string().map(|text| Quoted::new(&text));
    Shown: |args, p| args.iter().map(|arg| format!(", {}", p.shown(arg))).collect(); |p, c| {
        let mut args = vec![];
        while c.eat(",") {
            args.push(p.shown(c)?);
        }
        Ok(args)
    };

    Transpose: |how, _p| match how {
        Transposed::No => String::new(),
        Transposed::Yes => "trans".to_string(),
        Transposed::Left => "trans left".to_string(),
        Transposed::Right => "trans right".to_string(),
    };
    |_p, c| Ok(match c.eat("trans") {
        false => Transposed::No,
        true if c.eat("left") => Transposed::Left,
        true if c.eat("right") => Transposed::Right,
        true => Transposed::Yes,
    });
    OfFragments: |of, _p| match of[0] == of[1] {
        true => of[0].word().to_string(),
        false => format!("{} {}", of[0].word(), of[1].word()),
    };
    |_p, c| {
        let left = c.one_of(&Operand::WORDS)?;
        let right = of_word(&Operand::WORDS, c.peek());
        right.inspect(|_| _ = c.next());
        Ok([left, right.unwrap_or(left)])
    };
    All: |all, _p| if *all { "all".to_string() } else { String::new() }; |_p, c| Ok(c.eat("all"));

    NewAxis: |axis, p| p.open(*axis); |p, c| p.open(c.next());
}

/// Statements in braces, each on a line of its own.
macro_rules! bodies {
    ($($kind:ident: |$is:ident, $p:ident| $print:expr; |$q:ident, $c:ident| $parse:expr;)+) => {
        $(
            impl Spelled for $kind {
                fn print($is: &Self::Is, $p: &mut Printer<'_>) {
                    $print
                }
                fn parse<'a>($q: &mut Parser<'a>, $c: &mut Cursor<'a>) -> Res<Self::Is> {
                    $parse
                }
            }
        )+
    };
}

bodies! {
    Body: |body, p| p.braces(body); |p, c| p.braces(c);
    Then: |body, p| p.braces(body); |p, c| p.then(c);
    Otherwise: |body, p| if !body.is_empty() {
        p.word("else");
        p.braces(body);
    };
    |p, _c| p.otherwise();
}
