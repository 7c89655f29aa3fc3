//! Custom forms of the operations that no format describes.

use super::custom::Draft;
use super::function::Arg;
use super::*;
use crate::cuda_tile::ops::OpInfo;
use crate::num::DType;
use crate::num::printf::unterminated;

/// A carried value: its name in the region, and its initial value.
type Carried<'a> = ((&'a str, Span), (ValueId, Span));

impl<'a> Parser<'a> {
    pub(super) fn structured(&mut self, info: &'static OpInfo) -> Res<Draft> {
        let mut d = Draft::new(info);
        match info.opcode {
            Opcode::Break | Opcode::Continue | Opcode::Return | Opcode::Yield => self.terminator(&mut d)?,
            Opcode::For => self.for_loop(info, &mut d)?,
            Opcode::If => self.if_op(info, &mut d)?,
            Opcode::Loop => self.loop_op(info, &mut d)?,
            Opcode::Reduce | Opcode::Scan => self.fold(info, &mut d)?,
            Opcode::MakeTensorView => self.make_tensor_view(&mut d)?,
            Opcode::PrintTko => self.print(&mut d)?,
            Opcode::ExpCall => self.call(&mut d)?,
            Opcode::ExpExternElementwise => self.extern_elementwise(info, &mut d)?,
            Opcode::ExpGenerate => self.generate(&mut d)?,
            Opcode::ExpScatterStore => self.scatter_store(info, &mut d)?,
            Opcode::OptimizationBarrier => {
                d.groups[0] = vec![self.operand()?];
                if self.eat(',') {
                    self.expect_word("keep_axis_info")?;
                    d.attrs.push((AttrKey::KeepAxisInfo, Attr::Unit));
                }
                self.expect(':')?;
                d.results = vec![self.typed(d.groups[0][0])?];
            }
            _ => return self.expected("an operation with a custom form"),
        }
        Ok(d)
    }

    /// `T, T` or `(T, T)`
    pub(super) fn type_list(&mut self) -> Res<Vec<Type>> {
        if self.eat('(') {
            return self.list(')', |p| p.ty());
        }
        let mut out = vec![self.ty()?];
        while self.eat(',') {
            out.push(self.ty()?);
        }
        Ok(out)
    }

    /// A list of types that belong to operands, in order.
    fn typed_list(&mut self, operands: &[(ValueId, Span)]) -> Res<()> {
        let span = self.span;
        let parenthesised = self.is('(');
        let mut n = 0;
        let mut each = |p: &mut Self| {
            let at = p.span;
            let ty = p.ty()?;
            let at = p.since(at);
            if let Some(&operand) = operands.get(n) {
                p.check(operand, &ty, at);
            }
            n += 1;
            Ok(())
        };
        if parenthesised {
            self.advance();
            self.list(')', &mut each)?;
        } else {
            each(self)?;
            while self.eat(',') {
                each(self)?;
            }
        }
        if n != operands.len() {
            let message = format!("{} operands need as many types, found {n}", operands.len());
            return self.error(Code::OperandCount, self.since(span), message);
        }
        Ok(())
    }

    fn terminator(&mut self, d: &mut Draft) -> Res<()> {
        d.groups[0] = self.operands()?;
        if !d.groups[0].is_empty() {
            self.expect(':')?;
            self.typed_list(&d.groups[0])?;
        }
        Ok(())
    }

    /// `iter_values(%a = %x, ...)` as the region's names and the initial values.
    fn iter_values(&mut self) -> Res<Vec<Carried<'a>>> {
        if !self.eat_word("iter_values") {
            return Ok(vec![]);
        }
        self.expect('(')?;
        self.list(')', |p| {
            let Tok::Percent(name) = p.tok else { return p.expected("a carried value, `%name = %initial`") };
            let span = p.span;
            p.advance();
            p.expect('=')?;
            Ok(((name, span), p.operand()?))
        })
    }

    fn for_loop(&mut self, info: &'static OpInfo, d: &mut Draft) -> Res<()> {
        if self.eat_word("unsigned") {
            d.attrs.push((AttrKey::UnsignedCmp, Attr::Unit));
        }
        let Tok::Percent(iv) = self.tok else { return self.expected("the loop variable, `%name`") };
        let iv_span = self.span;
        self.advance();
        self.expect_word("in")?;
        self.expect('(')?;
        d.groups[0] = vec![self.operand()?];
        self.expect_word("to")?;
        d.groups[1] = vec![self.operand()?];
        self.expect(',')?;
        self.expect_word("step")?;
        d.groups[2] = vec![self.operand()?];
        self.expect(')')?;
        self.expect(':')?;
        let at = self.span;
        let iv_ty = self.ty()?;
        let at = self.since(at);
        for g in 0..3 {
            self.check(d.groups[g][0], &iv_ty, at);
        }
        let carried = self.iter_values()?;
        let mut args = vec![Arg { name: Some((iv, iv_span)), ty: iv_ty }];
        if !carried.is_empty() {
            self.expect_arrow()?;
            d.results = self.carried_types(&carried)?;
        }
        for ((name, init), ty) in carried.iter().zip(&d.results) {
            d.groups[3].push(*init);
            args.push(Arg { name: Some(*name), ty: ty.clone() });
        }
        d.regions = vec![self.region(args, Opcode::Continue)?];
        self.discard_dict(info, d)
    }

    /// The types of carried values, checked against the initial ones.
    fn carried_types(&mut self, carried: &[Carried<'a>]) -> Res<Vec<Type>> {
        let span = self.span;
        let types = self.type_list()?;
        let span = self.since(span);
        if types.len() != carried.len() {
            let message = format!("{} carried values need as many types, found {}", carried.len(), types.len());
            return self.error(Code::OperandCount, span, message);
        }
        for ((_, init), ty) in carried.iter().zip(&types) {
            self.check(*init, ty, span);
        }
        Ok(types)
    }

    fn if_op(&mut self, info: &'static OpInfo, d: &mut Draft) -> Res<()> {
        d.groups[0] = vec![self.operand()?];
        if self.eat_arrow() {
            d.results = self.type_list()?;
        }
        d.regions = vec![self.region(vec![], Opcode::Yield)?];
        if self.eat_word("else") {
            d.regions.push(self.region(vec![], Opcode::Yield)?);
        }
        self.discard_dict(info, d)
    }

    fn loop_op(&mut self, info: &'static OpInfo, d: &mut Draft) -> Res<()> {
        let carried = self.iter_values()?;
        let mut args = vec![];
        if self.eat(':') {
            if carried.is_empty() {
                d.results = self.type_list()?;
            } else {
                let types = self.carried_types(&carried)?;
                for ((name, init), ty) in carried.iter().zip(types) {
                    d.groups[0].push(*init);
                    args.push(Arg { name: Some(*name), ty });
                }
            }
        } else if !carried.is_empty() {
            return self.expected("`:` and the types of the carried values");
        }
        if self.eat_arrow() {
            d.results = self.type_list()?;
        }
        d.regions = vec![self.region(args, Opcode::Continue)?];
        self.discard_dict(info, d)
    }

    fn fold(&mut self, info: &'static OpInfo, d: &mut Draft) -> Res<()> {
        d.groups[0] = self.operands()?;
        for attr in info.attrs {
            self.expect_word(attr.name)?;
            self.expect('=')?;
            if let Some(value) = self.custom_attr(attr, false)? {
                d.attrs.push((attr.key, value));
            }
        }
        self.expect(':')?;
        self.typed_list(&d.groups[0])?;
        self.expect_arrow()?;
        // The result types end at the parenthesis of the body's arguments.
        d.results = if self.is('(') && !matches!(self.peek(), Tok::Percent(_)) {
            self.type_list()?
        } else {
            let mut types = vec![self.ty()?];
            while self.eat(',') {
                types.push(self.ty()?);
            }
            types
        };
        self.expect('(')?;
        let args = self.args()?;
        d.regions = vec![self.region(args, Opcode::Yield)?];
        self.discard_dict(info, d)
    }

    /// `[%m, 16]`: the values, and for each place its number or `None`.
    #[allow(clippy::type_complexity)]
    fn mixed(&mut self, word: &str) -> Res<(Vec<(ValueId, Span)>, Vec<Option<i64>>, Span)> {
        self.expect(',')?;
        self.expect_word(word)?;
        self.expect('=')?;
        let span = self.span;
        self.expect('[')?;
        let mut values = vec![];
        let numbers = self.list(']', |p| {
            if matches!(p.tok, Tok::Percent(_)) {
                values.push(p.operand()?);
                return Ok(None);
            }
            p.int().map(Some)
        })?;
        Ok((values, numbers, self.since(span)))
    }

    fn make_tensor_view(&mut self, d: &mut Draft) -> Res<()> {
        d.groups[0] = vec![self.operand()?];
        let (shape, shape_numbers, shape_span) = self.mixed("shape")?;
        let (strides, stride_numbers, stride_span) = self.mixed("strides")?;
        self.expect(':')?;
        let mut at = self.span;
        let mut ty = self.ty()?;
        // The base's type is written only if it has a pointer attribute.
        if matches!(&ty, Type::Tile(TileType { elem: Elem::Ptr(_), .. })) {
            self.check(d.groups[0][0], &ty, self.since(at));
            if self.eat(',') {
                at = self.span;
                ty = self.ty()?;
            } else {
                self.expect_arrow()?;
                at = self.span;
                ty = self.ty()?;
            }
        }
        if self.eat_arrow() {
            let at = self.since(at);
            for &operand in shape.iter().chain(&strides) {
                self.check(operand, &ty, at);
            }
            ty = self.ty()?;
        } else if !shape.is_empty() || !strides.is_empty() {
            let d = Diagnostic::error(Code::Syntax, "the type of the dynamic extents and strides is missing");
            self.report(d.at(self.since(at)).help("write `: tile<i32> -> tensor_view<...>`"));
            return Err(Failed);
        }
        let at = self.since(at);
        let Type::TensorView(view) = &ty else {
            return self.error(Code::TypeMismatch, at, "the result of make_tensor_view must be a tensor_view");
        };
        for (what, found, span, wanted) in
            [("shape", shape_numbers, shape_span, &view.shape), ("strides", stride_numbers, stride_span, &view.strides)]
        {
            if found != *wanted {
                let text = |v: &[Option<i64>]| {
                    v.iter().map(|d| d.map_or("?".into(), |d| d.to_string())).collect::<Vec<_>>().join(", ")
                };
                let message =
                    format!("the {what} given are [{}], but those of the type are [{}]", text(&found), text(wanted));
                let d = Diagnostic::error(Code::BadShape, message).at(span).label(at, "the type");
                self.report(d.help("write a value where the type has `?`, and the same number where it has a number"));
                return Err(Failed);
            }
        }
        d.groups[1] = shape;
        d.groups[2] = strides;
        d.results = vec![ty];
        Ok(())
    }

    fn print(&mut self, d: &mut Draft) -> Res<()> {
        let span = self.span;
        let mut text = self.string()?;
        if self.is(',') && matches!(self.peek(), Tok::Percent(_)) {
            self.advance();
            d.groups[0] = self.operands()?;
        }
        if self.token_ahead()? {
            d.groups[1] = vec![self.token_operand()?];
        }
        if !d.groups[0].is_empty() {
            self.expect(':')?;
            self.typed_list(&d.groups[0])?;
        } else if self.eat(':') {
            self.type_list()?;
        }
        if self.eat_arrow() {
            let at = self.span;
            if self.ty()? != Type::Token {
                return self.error(Code::TypeMismatch, at, "the result of print_tko must be a token");
            }
        }
        let types: Vec<Type> = d.groups[0].iter().map(|o| self.value_ty(o.0)).collect();
        if let Some(new) = fill_placeholders(&text, &types) {
            let help = format!("write {}", crate::base::lexer::escape(&new));
            self.old_spelling(span, "a `%` without a conversion is an older placeholder", help);
            text = new;
        }
        d.attrs.push((AttrKey::Str, Attr::Str(text)));
        d.results = vec![Type::Token];
        Ok(())
    }

    fn call(&mut self, d: &mut Draft) -> Res<()> {
        let callee = self.symbol()?;
        d.attrs.push((AttrKey::Callee, Attr::Str(callee)));
        self.expect('(')?;
        d.groups[0] = self.list(')', |p| p.operand())?;
        self.call_type(d)
    }

    fn extern_elementwise(&mut self, info: &'static OpInfo, d: &mut Draft) -> Res<()> {
        d.groups[0] = self.operands()?;
        self.discard_dict(info, d)?;
        self.call_type(d)
    }

    /// `: (types) -> types` of the arguments and the results.
    fn call_type(&mut self, d: &mut Draft) -> Res<()> {
        self.expect(':')?;
        if !self.is('(') {
            return self.expected("`(` and the types of the arguments");
        }
        self.typed_list(&d.groups[0])?;
        self.expect_arrow()?;
        d.results = self.type_list()?;
        Ok(())
    }

    fn generate(&mut self, d: &mut Draft) -> Res<()> {
        d.regions = vec![self.region(vec![], Opcode::Yield)?];
        self.expect(':')?;
        d.results = vec![self.ty()?];
        Ok(())
    }

    fn scatter_store(&mut self, info: &'static OpInfo, d: &mut Draft) -> Res<()> {
        for g in 0..3 {
            d.groups[g] = vec![self.operand()?];
            self.expect(',')?;
        }
        self.expect('[')?;
        d.groups[3] = self.list(']', |p| p.operand())?;
        if self.token_ahead()? {
            d.groups[4] = vec![self.token_operand()?];
        }
        let at = self.span;
        if self.eat('<') {
            let dict = self.dict()?;
            self.expect('>')?;
            let at = self.since(at);
            self.take_dict(info, dict, d, at)?;
        }
        self.expect(':')?;
        let all: Vec<_> = d.groups.iter().flatten().copied().collect();
        self.typed_list(&all)?;
        self.expect_arrow()?;
        d.results = vec![self.ty()?];
        Ok(())
    }
}

/// Returns the rest of the text if a printf conversion starts after a `%`.
fn conversion(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(['-', '+', ' ', '#', '0']);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.strip_prefix('.').map_or(rest, |r| r.trim_start_matches(|c: char| c.is_ascii_digit()));
    let rest = rest.trim_start_matches(['h', 'l', 'j', 'z', 't', 'L']);
    rest.strip_prefix(|c: char| "diuoxXeEfFgGaAcsSpn".contains(c))
}

/// The string with one of today's conversions for each bare `%` of older documents; `None` unless it has a bare `%`,
/// and one `%` per argument in all.
fn fill_placeholders(text: &str, args: &[Type]) -> Option<String> {
    if unterminated(text) {
        return None;
    }
    let mut out = String::new();
    let (mut rest, mut n, mut bare) = (text, 0, 0);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at + 1]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        match conversion(rest) {
            Some(after) => {
                out.push_str(&rest[..rest.len() - after.len()]);
                rest = after;
            }
            None => {
                bare += 1;
                out.push_str(match args.get(n).and_then(Type::tile).map(|t| t.elem) {
                    Some(Elem::Ptr(_)) => "p",
                    Some(Elem::Num(d)) if d.is_int() && d != DType::I1 => "i",
                    Some(Elem::Num(DType::I1)) => "i",
                    _ => "f",
                });
            }
        }
        n += 1;
    }
    out.push_str(rest);
    (bare > 0 && n == args.len()).then_some(out)
}
