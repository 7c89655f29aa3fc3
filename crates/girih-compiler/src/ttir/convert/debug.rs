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

/// `pid (0, 0, 0) prefix: value`, a tile's elements in brackets.
pub fn print(c: &mut Conv, op: &Op) -> Res<()> {
    let args = c.args(op)?;
    let hex = op.int("hex").unwrap_or(0) != 0;
    let signed = op.ints("isSigned").unwrap_or_default();
    let block = c.emit(Opcode::GetTileBlockId, &[], vec![], vec![Type::scalar(DType::I32); 3]);
    let prefix = text(op).replace('%', "%%");
    let mut format = format!("pid (%d, %d, %d){prefix}");
    for (i, &v) in args.iter().enumerate() {
        if i > 0 {
            format.push_str(", ");
        }
        format.push_str(match c.tile_ty(v).elem {
            Elem::Ptr(_) => "%p",
            Elem::Num(d) if d.is_float() => "%f",
            Elem::Num(_) if hex => "0x%x",
            Elem::Num(_) if signed.get(i) == Some(&0) => "%u",
            Elem::Num(_) => "%d",
        });
    }
    format.push('\n');
    let before = c.before_write();
    let all = [block, args].concat();
    let token = c.emit(
        Opcode::PrintTko,
        &[&all, before.as_slice()],
        vec![(AttrKey::Str, Attr::Str(format))],
        vec![Type::Token],
    )[0];
    c.did_write(token);
    Ok(())
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
