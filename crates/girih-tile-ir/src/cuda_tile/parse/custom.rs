//! Operands, and custom forms driven by the table's formats.

use super::attrs::is_default;
use super::*;
use crate::base::words::closest;
use crate::cuda_tile::ops::{Arity, OpInfo, Piece, Role};
use crate::cuda_tile::print::type_text;
use crate::num::DType;

/// An operation while it is being read.
#[derive(Default)]
pub(super) struct Draft {
    /// The operands of each group.
    pub groups: Vec<Vec<(ValueId, Span)>>,
    pub attrs: Vec<(AttrKey, Attr)>,
    pub results: Vec<Type>,
    pub regions: Vec<RegionId>,
}

impl Draft {
    pub fn new(info: &OpInfo) -> Draft {
        Draft { groups: vec![vec![]; info.operands.len()], ..Draft::default() }
    }
}

/// The names on the left of `=`.
#[derive(Default)]
pub(super) struct Results<'a> {
    pub names: Vec<(&'a str, u32, Span)>,
    pub count: usize,
}

impl<'a> Parser<'a> {
    /// A use of a value, `%x` or `%x#1`. A name of several values, without a number, means the first of them.
    pub(super) fn operand(&mut self) -> Res<(ValueId, Span)> {
        let Tok::Percent(name) = self.tok else { return self.expected("a value, `%name`") };
        let mut span = self.span;
        self.advance();
        let mut index = 0;
        if let Tok::Hash(digits) = self.tok
            && span.end == self.span.start
            && digits.bytes().all(|b| b.is_ascii_digit())
        {
            index = digits.parse::<usize>().unwrap_or(usize::MAX);
            span.end = self.span.end;
            self.advance();
        }
        let Some(state) = self.state.as_mut() else {
            return self.error(Code::Syntax, span, "a value is used outside a function");
        };
        let Some(binding) = state.names.get(name) else {
            // The search for a similar name takes time, which a file full of errors should not cost.
            let look = name.len() > 1 && self.errors < MAX_ERRORS;
            let known = state.bound.iter().rev().take(if look { 2000 } else { 0 });
            let near = closest(name, known.copied());
            let mut d =
                Diagnostic::error(Code::UndefinedValue, format!("the value %{name} is not defined here")).at(span);
            if let Some(near) = near {
                d = d.help(format!("did you mean %{near}?"));
            }
            self.report(d);
            self.bind(name, vec![], span);
            return Err(Failed);
        };
        if binding.values.is_empty() {
            return Err(Failed);
        }
        let (count, defined) = (binding.values.len(), binding.span);
        match binding.values.get(index) {
            Some(&v) => Ok((v, span)),
            None => {
                let d = Diagnostic::error(
                    Code::ResultCount,
                    format!("%{name} stands for {count} values; there is no #{index}"),
                );
                self.report(d.at(span).label(defined, "defined here"));
                Err(Failed)
            }
        }
    }

    /// Operands separated by commas; none if the next token is not a value.
    pub(super) fn operands(&mut self) -> Res<Vec<(ValueId, Span)>> {
        let mut out = vec![];
        if matches!(self.tok, Tok::Percent(_)) {
            out.push(self.operand()?);
            while self.is(',') && matches!(self.peek(), Tok::Percent(_)) {
                self.advance();
                out.push(self.operand()?);
            }
        }
        Ok(out)
    }

    /// Reads a type and compares it with that of the value used.
    pub(super) fn typed(&mut self, operand: (ValueId, Span)) -> Res<Type> {
        let span = self.span;
        let ty = self.ty()?;
        let span = self.since(span);
        self.check(operand, &ty, span);
        Ok(ty)
    }

    pub(super) fn value_ty(&self, v: ValueId) -> Type {
        self.state.as_ref().and_then(|s| s.func.values.get(v)).map_or(Type::Token, |v| v.ty.clone())
    }

    /// Reports a value used as another type than its own.
    pub(super) fn check(&mut self, (value, used): (ValueId, Span), ty: &Type, span: Span) {
        let Some(v) = self.state.as_ref().and_then(|s| s.func.values.get(value)) else { return };
        if v.ty == *ty {
            return;
        }
        let name = v.name.clone().unwrap_or_default();
        let message = format!("%{name} has type `{}`, but is used as `{}`", type_text(&v.ty), type_text(ty));
        let d = Diagnostic::error(Code::TypeMismatch, message).at(span).label(v.span, "defined here");
        self.report(if used == span { d } else { d.label(used, "used here") });
    }

    /// Reads an operation by its format; a result without a type in the format is a token.
    pub(super) fn custom(&mut self, info: &'static OpInfo, wanted: usize) -> Res<Draft> {
        let mut draft = Draft::new(info);
        let mut results: Vec<Option<Type>> = vec![None; info.results.len()];
        let mut splat = None;
        let mut i = 0;
        while let Some(piece) = info.pieces.get(i) {
            i += 1;
            match piece {
                Piece::Literal(word) => {
                    if *word == ":" {
                        self.discard_dict(info, &mut draft)?;
                    }
                    self.literal(word)?;
                }
                Piece::Operand(g) => match info.operands[*g].arity {
                    Arity::One => draft.groups[*g] = vec![self.operand()?],
                    Arity::Many => draft.groups[*g] = self.operands()?,
                    Arity::Optional => {
                        if self.is(',') && matches!(self.peek(), Tok::Percent(_)) {
                            self.advance();
                            draft.groups[*g] = vec![self.operand()?];
                        }
                    }
                },
                Piece::Token(_) | Piece::Attr { optional: true, .. } => {
                    // Consecutive optional pieces may be in any order.
                    let run = info.pieces[i - 1..].iter();
                    let run: Vec<&Piece> =
                        run.take_while(|p| matches!(p, Piece::Token(_) | Piece::Attr { optional: true, .. })).collect();
                    i += run.len() - 1;
                    self.optionals(info, &run, &mut draft)?;
                }
                Piece::Attr { index, .. } => {
                    let attr = &info.attrs[*index];
                    if let Some(value) = self.custom_attr(attr, false)? {
                        draft.attrs.push((attr.key, value));
                    }
                }
                Piece::Types(roles) => {
                    let span = self.span;
                    let ty = self.ty()?;
                    let span = self.since(span);
                    for role in roles {
                        match role {
                            Role::Operands(g) => {
                                for operand in draft.groups[*g].clone() {
                                    self.check(operand, &ty, span);
                                }
                            }
                            Role::Result(r) => results[*r] = Some(ty.clone()),
                        }
                    }
                }
                Piece::OptionalType(g) => {
                    if let Some(&operand) = draft.groups[*g].first() {
                        self.expect(',')?;
                        self.typed(operand)?;
                    }
                }
                Piece::SplatTypes(g) => self.splat_types(&draft.groups[*g].clone())?,
                Piece::ResultTypes => splat = Some(self.ty()?),
                Piece::OptionalTokenType { .. } => {
                    if self.is(':') || self.tok == Tok::Arrow {
                        self.advance();
                        let span = self.span;
                        if self.ty()? != Type::Token {
                            return self.error(Code::TypeMismatch, span, "the result must be a token");
                        }
                    }
                }
            }
        }
        if info.opcode == Opcode::LoadPtrTko {
            self.padding_alone(&mut draft);
        }
        draft.results = match splat {
            None => results.into_iter().map(|t| t.unwrap_or(Type::Token)).collect(),
            Some(ty) => {
                let count = match (info.has_variadic_results(), wanted) {
                    (false, _) => info.results.len(),
                    (true, 0) => self.rank_of(draft.groups.first().and_then(|g| g.first())),
                    (true, n) => n,
                };
                vec![ty; count]
            }
        };
        Ok(draft)
    }

    /// The rank of a view.
    fn rank_of(&self, operand: Option<&(ValueId, Span)>) -> usize {
        match operand.map(|o| self.value_ty(o.0)) {
            Some(Type::TensorView(t)) => t.shape.len(),
            Some(Type::View(v)) => v.tile.len(),
            _ => 0,
        }
    }

    fn literal(&mut self, word: &'static str) -> Res<()> {
        match word {
            "->" => self.expect_arrow(),
            ":" => {
                if !self.is(':') {
                    return self.expected("`:` and the types");
                }
                self.advance();
                Ok(())
            }
            _ if word.len() == 1 && !word.as_bytes()[0].is_ascii_alphanumeric() => {
                self.expect(word.chars().next().unwrap_or(' '))
            }
            _ => self.expect_word(word),
        }
    }

    fn optionals(&mut self, info: &'static OpInfo, run: &[&Piece], draft: &mut Draft) -> Res<()> {
        'again: loop {
            for piece in run {
                match piece {
                    Piece::Token(g) if self.token_ahead()? => {
                        if !draft.groups[*g].is_empty() {
                            return self.error(Code::Syntax, self.span, "a second `token =`");
                        }
                        draft.groups[*g] = vec![self.token_operand()?];
                        continue 'again;
                    }
                    Piece::Attr { index, .. } => {
                        let attr = &info.attrs[*index];
                        let span = self.span;
                        if let Some(value) = self.custom_attr(attr, true)? {
                            if draft.attrs.iter().any(|(k, _)| *k == attr.key) {
                                return self.error(Code::Syntax, span, format!("a second `{}`", attr.name));
                            }
                            draft.attrs.push((attr.key, value));
                            continue 'again;
                        }
                    }
                    _ => {}
                }
            }
            return Ok(());
        }
    }

    /// A load's mask and padding are in one list, so a padding without a mask looks like a mask; its type tells them
    /// apart.
    fn padding_alone(&self, draft: &mut Draft) {
        if let [_, mask, padding, ..] = &mut draft.groups[..]
            && padding.is_empty()
            && let Some(&(v, _)) = mask.first()
            && self.value_ty(v).tile().is_some_and(|t| t.elem != Elem::Num(DType::I1))
        {
            std::mem::swap(mask, padding);
        }
    }

    /// Returns true if `token =` comes next; an older comma before it is taken with a warning.
    pub(super) fn token_ahead(&mut self) -> Res<bool> {
        if self.is(',') && self.peek() == Tok::Word("token") {
            let span = self.span;
            self.advance();
            self.old_spelling(span, "a comma before `token`", "leave the comma out: `... token = %t`");
        }
        Ok(self.is_word("token"))
    }

    pub(super) fn token_operand(&mut self) -> Res<(ValueId, Span)> {
        self.expect_word("token")?;
        self.expect('=')?;
        let operand = self.operand()?;
        self.check(operand, &Type::Token, operand.1);
        Ok(operand)
    }

    /// `, type` for all the group's operands, or one for each; nothing if there are no operands.
    pub(super) fn splat_types(&mut self, group: &[(ValueId, Span)]) -> Res<()> {
        if group.is_empty() {
            return Ok(());
        }
        self.expect(',')?;
        let span = self.span;
        let ty = self.ty()?;
        let span = self.since(span);
        // A token's type may follow; an index has none.
        let one = !self.is(',') || self.peek() == Tok::Word("token");
        for (i, &operand) in group.iter().enumerate() {
            if i == 0 || one {
                self.check(operand, &ty, span);
            } else {
                self.expect(',')?;
                self.typed(operand)?;
            }
        }
        Ok(())
    }

    /// An attribute dictionary before the types, with or without `attributes` before it: attributes of the operation are taken, others dropped with a warning.
    pub(super) fn discard_dict(&mut self, info: &'static OpInfo, draft: &mut Draft) -> Res<()> {
        if self.is_word("attributes") {
            self.advance();
        } else if !self.is('{') {
            return Ok(());
        }
        let span = self.span;
        let dict = self.dict()?;
        let span = self.since(span);
        self.take_dict(info, dict, draft, span)
    }

    pub(super) fn take_dict(
        &mut self,
        info: &'static OpInfo,
        dict: Vec<(String, attrs::AnyAttr)>,
        draft: &mut Draft,
        span: Span,
    ) -> Res<()> {
        for (name, value) in dict {
            let old_name = |a: &&crate::cuda_tile::ops::AttrInfo| {
                a.name == name || (a.key == AttrKey::Rounding && name == "rounding")
            };
            match info.attrs.iter().find(old_name) {
                Some(attr) => {
                    let value = self.convert_attr(attr, value, span)?;
                    draft.attrs.push((attr.key, value));
                }
                None if name == "operandSegmentSizes" => {}
                None => {
                    let message = format!("`{}` has no attribute `{name}`; it is ignored", info.name);
                    self.report(Diagnostic::warning(Code::IgnoredAttribute, message).at(span));
                }
            }
        }
        Ok(())
    }

    /// Adds a finished operation to a region and names its results.
    pub(super) fn finish(
        &mut self,
        region: RegionId,
        info: &'static OpInfo,
        mut draft: Draft,
        results: &Results<'a>,
        span: Span,
        loc: Loc,
    ) -> Res<()> {
        if info.opcode == Opcode::Constant
            && let (Some((_, Attr::Elements(e))), Some(ty)) = (draft.attrs.first_mut(), draft.results.first())
        {
            let ty = ty.clone();
            let mut elements = std::mem::replace(e, Elements { dtype: e.dtype, shape: vec![], bits: vec![] });
            self.shape_elements(&mut elements, &ty, span);
            if elements.bits.is_empty() {
                return Err(Failed);
            }
            draft.attrs = vec![(AttrKey::Value, Attr::Elements(elements))];
        }
        if results.count != draft.results.len() && results.count != 0 {
            let message = format!(
                "`{}` has {}, but {} named",
                info.name,
                count(draft.results.len(), "result"),
                are(results.count)
            );
            return self.error(Code::ResultCount, results.names.first().map_or(span, |n| n.2), message);
        }
        let order = |k: &AttrKey| info.attrs.iter().position(|a| a.key == *k);
        draft.attrs.retain(|(k, a)| info.attr(*k).is_none_or(|i| !is_default(i, a)));
        draft.attrs.sort_by_key(|(k, _)| order(k));
        let Some(state) = self.state.as_mut() else { return Err(Failed) };
        let f = &mut state.func;
        let op = f.ops.push(Op {
            opcode: info.opcode,
            operands: draft.groups.iter().flatten().map(|(v, _)| *v).collect(),
            groups: draft.groups.iter().map(|g| g.len() as u32).collect(),
            results: vec![],
            attrs: draft.attrs,
            regions: draft.regions,
            span,
            loc,
        });
        f.regions[region].ops.push(op);
        let mut ids = vec![];
        for (index, ty) in draft.results.into_iter().enumerate() {
            let def = ValueDef::Result { op, index: index as u32 };
            ids.push(f.values.push(Value { ty, def, name: None, span }));
        }
        f.ops[op].results = ids.clone();
        let mut rest = ids.into_iter();
        for &(name, n, name_span) in &results.names {
            let group: Vec<ValueId> = rest.by_ref().take(n as usize).collect();
            if let Some(state) = self.state.as_mut() {
                for (i, &v) in group.iter().enumerate() {
                    let value = &mut state.func.values[v];
                    value.name = Some(if n == 1 { name.to_string() } else { format!("{name}#{i}") });
                    value.span = name_span;
                }
            }
            self.bind(name, group, name_span);
        }
        Ok(())
    }

    /// Binds a name to its values; to no values if its definition failed.
    pub(super) fn bind(&mut self, name: &'a str, values: Vec<ValueId>, span: Span) {
        let Some(state) = self.state.as_mut() else { return };
        if let Some(old) = state.names.get_mut(name) {
            let (was_known, at) = (!old.values.is_empty(), old.span);
            *old = Binding { values, span };
            if was_known {
                let d = Diagnostic::error(Code::Redefinition, format!("%{name} is defined twice"));
                self.report(
                    d.at(span)
                        .label(at, "first defined here")
                        .help("each value has one definition; choose another name"),
                );
            }
            return;
        }
        state.names.insert(name, Binding { values, span });
        state.bound.push(name);
    }
}

fn count(n: usize, noun: &str) -> String {
    match n {
        0 => format!("no {noun}"),
        1 => format!("one {noun}"),
        _ => format!("{n} {noun}s"),
    }
}

fn are(n: usize) -> String {
    if n == 1 { "one is".into() } else { format!("{n} are") }
}
