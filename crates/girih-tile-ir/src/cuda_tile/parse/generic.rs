//! The generic form: `"cuda_tile.addi"(%a, %b) <{overflow = ...}> : (T, T) -> T`.

use super::attrs::AnyAttr;
use super::custom::Draft;
use super::*;
use crate::cuda_tile::ops::{Arity, AttrInfo, AttrKind, OpInfo, Piece};

type Dict = Vec<(String, AnyAttr)>;

impl<'a> Parser<'a> {
    /// `(T, T) -> T`
    pub(super) fn function_type(&mut self) -> Res<(Vec<Type>, Vec<Type>)> {
        self.expect('(')?;
        let inputs = self.list(')', |p| p.ty())?;
        self.expect_arrow()?;
        Ok((inputs, self.type_list()?))
    }

    /// `<{...}>`, if it comes next.
    pub(super) fn properties(&mut self) -> Res<Dict> {
        if !self.eat('<') {
            return Ok(vec![]);
        }
        let dict = self.dict()?;
        self.expect('>')?;
        Ok(dict)
    }

    pub(super) fn generic(&mut self, info: &'static OpInfo) -> Res<Draft> {
        let mut d = Draft::new(info);
        let start = self.span;
        self.expect('(')?;
        let operands = self.list(')', |p| p.operand())?;
        let mut dict = self.properties()?;
        if self.eat('(') {
            let end = match info.opcode {
                Opcode::For | Opcode::Loop => Opcode::Continue,
                _ => Opcode::Yield,
            };
            let regions = self.list(')', |p| {
                if info.opcode == Opcode::If && p.is('{') && p.peek() == Tok::Punct('}') {
                    p.advance();
                    p.advance();
                    return Ok(None);
                }
                p.region(vec![], end).map(Some)
            })?;
            d.regions = regions.into_iter().flatten().collect();
        }
        if self.is('{') {
            dict.extend(self.dict()?);
        }
        let span = self.since(start);
        self.expect(':')?;
        let at = self.span;
        let (inputs, results) = self.function_type()?;
        let at = self.since(at);
        if inputs.len() != operands.len() {
            let message = format!("{} operands need as many types, found {}", operands.len(), inputs.len());
            return self.error(Code::OperandCount, at, message);
        }
        for (operand, ty) in operands.iter().zip(&inputs) {
            self.check(*operand, ty, at);
        }
        d.results = results;
        self.segment(info, &mut d, operands, &dict, span)?;
        if !(info.regions.0..=info.regions.1).contains(&d.regions.len()) {
            let message = format!("`{}` needs {} region, found {}", info.name, info.regions.0, d.regions.len());
            return self.error(Code::OperandCount, span, message);
        }
        self.take_dict(info, dict, &mut d, span)?;
        for attr in info.attrs.iter().filter(|a| is_required(info, a)) {
            if !d.attrs.iter().any(|(k, _)| *k == attr.key) {
                let _: Res<()> = self.error(
                    Code::MissingAttribute,
                    span,
                    format!("`{}` needs the attribute `{}`", info.name, attr.name),
                );
            }
        }
        Ok(d)
    }

    /// Divides the operands among the groups.
    fn segment(
        &mut self,
        info: &OpInfo,
        d: &mut Draft,
        mut operands: Vec<(ValueId, Span)>,
        dict: &Dict,
        span: Span,
    ) -> Res<()> {
        let total = operands.len();
        if let Some((_, AnyAttr::Ints(sizes))) = dict.iter().find(|(k, _)| k == "operandSegmentSizes") {
            let fits = sizes.len() == d.groups.len()
                && sizes.iter().all(|&n| (0..=total as i64).contains(&n))
                && sizes.iter().sum::<i64>() == total as i64;
            let arities = info.operands.iter().zip(sizes).all(|(g, &n)| match g.arity {
                Arity::One => n == 1,
                Arity::Optional => n <= 1,
                Arity::Many => true,
            });
            if !fits || !arities {
                return self.error(
                    Code::OperandCount,
                    span,
                    format!("operandSegmentSizes do not fit the operands of `{}`", info.name),
                );
            }
            let mut rest = operands.into_iter();
            for (group, &n) in d.groups.iter_mut().zip(sizes) {
                group.extend(rest.by_ref().take(n as usize));
            }
            return Ok(());
        }
        // Without sizes a last operand that is a token belongs to the group `token`.
        if let (Some(g), Some(last)) = (info.group("token"), operands.last().copied())
            && self.value_ty(last.0) == Type::Token
        {
            d.groups[g].push(last);
            operands.pop();
        }
        let later =
            |g: usize| info.operands[g + 1..].iter().filter(|o| o.arity == Arity::One && o.name != "token").count();
        let mut rest = operands.into_iter();
        for (g, group) in info.operands.iter().enumerate() {
            if !d.groups[g].is_empty() {
                continue;
            }
            let take = match group.arity {
                Arity::One => 1,
                Arity::Optional => usize::from(group.name != "token" && rest.len() > later(g)),
                Arity::Many => rest.len().saturating_sub(later(g)),
            };
            d.groups[g].extend(rest.by_ref().take(take));
            if group.arity == Arity::One && d.groups[g].is_empty() {
                return self.error(
                    Code::OperandCount,
                    span,
                    format!("`{}` has no operand for `{}`", info.name, group.name),
                );
            }
        }
        match rest.next() {
            None => Ok(()),
            Some((_, at)) => {
                self.error(Code::OperandCount, at, format!("`{}` does not take another operand", info.name))
            }
        }
    }
}

/// Returns true if an attribute is required in the generic form.
fn is_required(info: &OpInfo, attr: &AttrInfo) -> bool {
    let optional = info.pieces.iter().any(|p| match p {
        Piece::Attr { index, optional } => *optional && info.attrs[*index].key == attr.key,
        _ => false,
    });
    let by_kind = matches!(attr.kind, AttrKind::Unit | AttrKind::Hints | AttrKind::Bools);
    !(optional || by_kind || !attr.default.is_empty() || info.is_extension())
}
