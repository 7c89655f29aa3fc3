//! The text of each [kind](super::kinds) of part, both ways: how it prints, and how it is read back.
//!
//! ```text
//! Where     where i < n          nothing, where the mask always holds
//! Step      step 2               nothing, for 1
//! ```
//! Constants have the type of the place where they stand: of the value that the statement defines, of the elements of memory or of a
//! buffer. The printer and the parser know both.
//!
//! Invariant: what a kind prints, it reads back as the same part.

use super::ir::*;
use super::kinds::*;
use super::parse::{Parser, Res};
use super::print::{ORDERS, PLACES, Printer, RMWS, list, num_of, place_text, word_of};
use crate::base::label::quote;
use crate::num::DType;

/// A kind with its text.
pub(super) trait Spelled: Kind {
    fn print(is: &Self::Is, p: &mut Printer<'_>);
    fn parse(p: &mut Parser<'_, '_>) -> Res<Self::Is>;
}

/// `KIND, ..: its text by a printer; how a parser reads it`.
macro_rules! spelled {
    ($($($kind:ident),+: |$is:ident, $p:ident| $print:expr; |$q:ident| $parse:expr;)+) => {
        $($(
            impl Spelled for $kind {
                fn print($is: &Self::Is, $p: &mut Printer<'_>) {
                    let text: String = $print;
                    $p.word(&text);
                }
                fn parse($q: &mut Parser<'_, '_>) -> Res<Self::Is> {
                    $parse
                }
            }
        )+)+
    };
}

const ITERATIONS: [(&str, LoopKind); 3] =
    [("free", LoopKind::Free), ("reduce", LoopKind::Reduce), ("serial", LoopKind::Serial)];

spelled! {
    New: |val, p| p.define(*val); |p| p.new_val();
    // The text of an operation has its operands in it.
    Operation: |op, p| p.operation(*op); |p| p.scalar();
    Operands: |args, p| p.operands(args); |p| Ok(std::mem::take(&mut p.args));
    Value: |opnd, p| p.opnd(opnd, p.elem); |p| p.opnd(p.elem);
    Truth: |opnd, p| p.opnd(opnd, Some(DType::I1)); |p| p.opnd(Some(DType::I1));
    Else: |other, p| match other {
        Some(other) => format!("else {}", p.opnd(other, num_of(p.ty))),
        None => String::new(),
    };
    |p| if p.c.eat_word("else") { p.opnd(num_of(p.ty)).map(Some) } else { Ok(None) };

    Index: |ix, p| p.ix(ix); |p| p.ix();
    End: |ix, p| p.range_end(ix); |p| p.ix();
    Step: |ix, p| if ix.is_const(1) { String::new() } else { format!("step {}", p.ix(ix)) };
    |p| if p.c.eat_word("step") { p.ix() } else { Ok(Ix::Const(1)) };
    ReadFrom: |buf, p| p.names.buf(*buf); |p| p.buf();
    WriteTo: |buf, p| {
        p.elem = num_of(p.buf_ty(*buf));
        p.names.buf(*buf)
    };
    |p| {
        let buf = p.buf()?;
        p.elem = num_of(Some(p.kernel.bufs[buf].ty));
        Ok(buf)
    };
    Subscripts: |idx, p| match idx.is_empty() {
        true => String::new(),
        false => format!("[{}]", list(idx, |ix| p.ix(ix))),
    };
    |p| if p.c.eat("[") { p.items("]", |p| p.ix()) } else { Ok(vec![]) };
    Declared: |buf, p| p.buf_decl(*buf); |p| p.define_buf();
    Memory: |mem, p| {
        p.elem = Some(mem.elem);
        p.mem(mem)
    };
    |p| {
        let mem = p.mem()?;
        p.elem = Some(mem.elem);
        Ok(mem)
    };
    Condition: |mask, p| p.mask(mask); |p| p.mask();
    Where: |mask, p| if mask.is_always() { String::new() } else { format!("where {}", p.mask(mask)) };
    |p| if p.c.eat_word("where") { p.mask() } else { Ok(Mask::default()) };
    Ordered: |order, _p| if *order == Order::Weak { String::new() } else { word_of(&ORDERS, order).to_string() };
    |p| Ok(p.one_of(&ORDERS).unwrap_or(Order::Weak));

    AtSite: |site, p| p.site(*site); |p| p.site();
    AtomicOp: |op, _p| word_of(&RMWS, op).to_string(); |p| p.c.choice(&RMWS, "an atomic operation");
    GlobalName: |global, p| p.global(*global); |p| p.global_name();
    Number: |n, _p| n.to_string(); |p| p.number();
    Text: |text, _p| quote(text); |p| p.c.string();
    Shown: |args, p| args.iter().map(|arg| format!(", {}", p.shown(arg))).collect(); |p| {
        let mut args = vec![];
        while p.c.eat(",") {
            args.push(p.shown()?);
        }
        Ok(args)
    };
    Filling: |how, _p| Filled::WORDS.iter().find(|(_, f)| f == how).map_or("", |(word, _)| word).to_string();
    |p| Ok(p.one_of(&Filled::WORDS).unwrap_or_default());

    NewAxis: |axis, p| p.open(*axis); |p| p.define_axis();
    Iterations: |kind, _p| word_of(&ITERATIONS, kind).to_string();
    |p| p.c.choice(&ITERATIONS, "`free`, `reduce` or `serial`");
    Placed: |place, _p| place_text(*place);
    |p| match p.one_of(&PLACES) {
        Some(place) => Ok(place),
        None => p.place(),
    };
    Combining: |combine, p| combine.as_ref().map_or(String::new(), |c| p.combine(c));
    |p| if p.c.eat_word("combine") { p.combine().map(Some) } else { Ok(None) };
    Streaming: |stream, p| stream.as_ref().map_or(String::new(), |s| {
        let (val, buf) = (|v| p.names.val(v), |b| p.names.buf(b));
        format!(
            "stream score={} value={} greatest={} total={} acc={}",
            val(s.score), val(s.value), buf(s.greatest), buf(s.total), buf(s.acc)
        )
    });
    |p| if p.c.eat_word("stream") {
        let (score, value) = (p.role("score", Parser::inner_val)?, p.role("value", Parser::inner_val)?);
        let (greatest, total) = (p.role("greatest", Parser::buf)?, p.role("total", Parser::buf)?);
        Ok(Some(Stream { score, value, greatest, total, acc: p.role("acc", Parser::buf)? }))
    } else {
        Ok(None)
    };
    Contracting: |roles, p| roles.as_ref().map_or(String::new(), |c| {
        let [m, n, k] = [&c.m, &c.n, &c.k].map(|axes| p.role(axes));
        let (a, b, acc) = (p.names.val(c.a), p.names.val(c.b), p.names.buf(c.acc));
        format!("contraction m={m} n={n} k={k} a={a} b={b} acc={acc}")
    });
    |p| if p.c.eat_word("contraction") {
        let axes = Parser::role_axes;
        let (m, n, k) = (p.role("m", axes)?, p.role("n", axes)?, p.role("k", axes)?);
        let (a, b) = (p.role("a", Parser::inner_val)?, p.role("b", Parser::inner_val)?);
        Ok(Some(Contraction { m, n, k, a, b, acc: p.role("acc", Parser::buf)? }))
    } else {
        Ok(None)
    };
    Body: |body, p| {
        p.body(body);
        String::new()
    };
    |p| p.body();
    Otherwise: |body, p| {
        if !body.is_empty() {
            p.word("else:");
            p.body(body);
        }
        String::new()
    };
    |p| if p.c.eat_word("else") {
        p.c.punct(":")?;
        p.body()
    } else {
        Ok(vec![])
    };
}
