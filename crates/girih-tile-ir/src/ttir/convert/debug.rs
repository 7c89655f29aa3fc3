//! `tt.print` and `tt.assert`.

use super::*;
use crate::ttir::ast::Attr as TtAttr;

fn text(op: &Op) -> String {
    let named = ["prefix", "message"].iter().find_map(|name| op.text(name));
    let quoted = op.attrs.iter().find_map(|(name, a)| match a {
        TtAttr::Str(s) if name.is_empty() => Some(s.as_str()),
        _ => None,
    });
    quoted.or(named).unwrap_or("").to_string()
}

/// A line for each element, as Triton prints them: `pid (0, 0, 0) idx ( 3) prefix: value`.
pub fn print(c: &mut Conv, op: &Op) -> Res<()> {
    let args = c.args(op)?;
    let prefix = text(op).replace('%', "%%");
    let block = c.emit(Opcode::GetTileBlockId, &[], vec![], vec![Type::scalar(DType::I32); 3]);
    if args.is_empty() {
        line(c, format!("pid (%u, %u, %u){prefix}"), &block);
    }
    let signed = op.ints("isSigned").unwrap_or_default();
    let hex = op.int("hex").unwrap_or(0) != 0;
    for (i, &v) in args.iter().enumerate() {
        let ty = c.tile_ty(v).clone();
        let value = conversion(ty.elem, hex, signed.get(i).is_some_and(|s| *s != 0));
        let which = if args.len() > 1 { format!("(operand {i}) ") } else { String::new() };
        // As wide as the greatest number below the extent.
        let width = |n: u64| if n < 2 { String::new() } else { ((n - 1).ilog10() + 1).to_string() };
        let places: Vec<String> = ty.shape.iter().map(|&n| format!("%{}u", width(n))).collect();
        let format = format!("pid (%u, %u, %u) idx ({}){prefix}{which}{value}", places.join(", "));
        if ty.shape.is_empty() {
            line(c, format, &[&block[..], &[v]].concat());
            continue;
        }
        c.rounds(ty.elements(), vec![], |c, round, _| {
            let index = places_of(c, &ty.shape, round);
            let one = TileType { shape: vec![1; ty.shape.len()], ..ty.clone() };
            let element = c.tile(Opcode::Extract, &[&[v], &index], vec![], one);
            let element = c.reshaped(element, &[]);
            line(c, format, &[&block[..], &index, &[element]].concat());
            Ok(vec![])
        })?;
    }
    Ok(())
}

fn line(c: &mut Conv, mut format: String, values: &[ValueId]) {
    format.push('\n');
    let before = c.before_write();
    let attrs = vec![(AttrKey::Str, Attr::Str(format))];
    let token = c.emit(Opcode::PrintTko, &[values, before.as_slice()], attrs, vec![Type::Token]);
    c.did_write(token[0]);
}

fn conversion(elem: Elem, hex: bool, signed: bool) -> String {
    match elem {
        Elem::Ptr(_) => "%p".into(),
        Elem::Num(d) if d.is_float() => if hex { "%a" } else { "%f" }.into(),
        Elem::Num(d) if hex => format!("0x%0{}x", (d.bits() / 4).max(1)),
        Elem::Num(_) => if signed { "%i" } else { "%u" }.into(),
    }
}

/// The place of an element in a tile, of its row-major number.
fn places_of(c: &mut Conv, shape: &[u64], number: ValueId) -> Vec<ValueId> {
    let unsigned = || vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Unsigned))];
    let mut rest = number;
    let mut out = vec![];
    for &n in shape.iter().rev() {
        let extent = c.fill(&[], DType::I32, n);
        out.push(c.same_with(Opcode::RemI, &[rest, extent], unsigned()));
        rest = c.same_with(Opcode::DivI, &[rest, extent], unsigned());
    }
    out.reverse();
    out
}

pub fn assert(c: &mut Conv, op: &Op) -> Res<()> {
    let mut condition = c.arg(op, 0)?;
    if c.dtype(op, condition)? != DType::I1 {
        let (shape, dtype) = (c.tile_ty(condition).shape.clone(), c.dtype(op, condition)?);
        let zero = c.fill(&shape, dtype, 0);
        condition = c.integers_compare(crate::num::op::Predicate::NotEqual, Signedness::Signed, condition, zero);
    }
    if op.operands.len() == 2 {
        // Where the mask is false, nothing is asserted.
        let mask = c.arg(op, 1)?;
        let shape = c.tile_ty(mask).shape.clone();
        let ones = c.fill(&shape, DType::I1, 1);
        let outside = c.same(Opcode::XorI, &[mask, ones]);
        condition = c.same(Opcode::OrI, &[condition, outside]);
    }
    c.emit(Opcode::Assert, &[&[condition]], vec![(AttrKey::Message, Attr::Str(text(op)))], vec![]);
    Ok(())
}
