//! Attributes: the words of custom forms, and the dictionaries of generic ones.

use super::*;
use crate::base::words::did_you_mean;
use crate::cuda_tile::ops::{AttrInfo, AttrKind};
use crate::cuda_tile::words::Words;
use crate::num::DType;

/// An attribute in its generic form, before its key gives it a meaning.
#[derive(Clone, Debug)]
pub(super) enum AnyAttr {
    Unit,
    Bool(bool),
    /// A number and its type, if one is written.
    Int(i64, Option<DType>),
    Number(DType, u64),
    Str(String),
    Symbol(String),
    List(Vec<AnyAttr>),
    Ints(Vec<i64>),
    Bools(Vec<bool>),
    Dict(Vec<(String, AnyAttr)>),
    /// The word of an enumeration, `#cuda_tile.rounding<zero>`.
    Word(String),
    Elements(Elements),
    Assumption(Assumption),
    Hints(Hints),
    FuncType,
    Type,
}

impl<'a> Parser<'a> {
    /// The value of an attribute in a custom form, at its place in the format. `None`: an optional attribute is absent.
    pub(super) fn custom_attr(&mut self, info: &AttrInfo, optional: bool) -> Res<Option<Attr>> {
        let here = match info.kind {
            AttrKind::Unit => self.is_word(info.name),
            AttrKind::Rounding => self.is_word("rounding"),
            AttrKind::Overflow => self.is_word("overflow"),
            AttrKind::Hints => self.is_word("optimization_hints"),
            AttrKind::Bools => self.is_word(info.name),
            AttrKind::MemoryScope => matches!(self.tok, Tok::Word(w) if MemoryScope::from_word(w).is_some()),
            _ => !optional,
        };
        if !here && optional {
            return Ok(None);
        }
        Ok(Some(match info.kind {
            AttrKind::Unit => {
                self.expect_word(info.name)?;
                Attr::Unit
            }
            AttrKind::Bool => Attr::Bool(self.boolean()?),
            AttrKind::I64 | AttrKind::I32 => {
                let n = self.int()?;
                self.skip_number_type()?;
                Attr::Int(n)
            }
            AttrKind::Str => Attr::Str(self.string()?),
            AttrKind::Symbol => Attr::Str(self.symbol()?),
            AttrKind::I32s => {
                self.expect('[')?;
                Attr::I32s(self.list(']', |p| p.int32())?)
            }
            AttrKind::Bools => {
                self.expect_word(info.name)?;
                self.expect('=')?;
                self.expect('[')?;
                Attr::Bools(self.list(']', |p| p.boolean())?)
            }
            AttrKind::Rounding => {
                self.expect_word("rounding")?;
                self.expect('<')?;
                let r = self.enum_word()?;
                self.expect('>')?;
                Attr::Rounding(r)
            }
            AttrKind::Overflow => {
                self.expect_word("overflow")?;
                self.expect('<')?;
                let o = self.enum_word()?;
                self.expect('>')?;
                Attr::Overflow(o)
            }
            AttrKind::Signedness => Attr::Signedness(self.enum_word()?),
            AttrKind::Predicate => Attr::Predicate(self.enum_word()?),
            AttrKind::Ordered => Attr::Ordered(self.enum_word()?),
            AttrKind::MemoryOrdering => Attr::MemoryOrdering(self.enum_word()?),
            AttrKind::MemoryScope => Attr::MemoryScope(self.enum_word()?),
            AttrKind::Mode => Attr::Mode(self.enum_word()?),
            AttrKind::Reduction => Attr::Reduction(self.enum_word()?),
            AttrKind::Elements => Attr::Elements(self.elements()?),
            AttrKind::Identities => Attr::Identities(self.identities()?),
            AttrKind::Assumption => Attr::Assumption(self.assumption()?),
            AttrKind::Hints => {
                self.expect_word("optimization_hints")?;
                self.expect('=')?;
                Attr::Hints(self.hints()?)
            }
        }))
    }

    pub(super) fn boolean(&mut self) -> Res<bool> {
        match self.tok {
            Tok::Word(w @ ("true" | "false")) => {
                self.advance();
                Ok(w == "true")
            }
            Tok::Int(d @ ("0" | "1")) => {
                self.advance();
                Ok(d == "1")
            }
            _ => self.expected("`true` or `false`"),
        }
    }

    /// ` : i64` after a number that carries its type.
    fn skip_number_type(&mut self) -> Res<Option<DType>> {
        if self.is(':') && matches!(self.peek(), Tok::Word(w) if types::dtype_of(w).is_some()) {
            self.advance();
            return self.dtype().map(Some);
        }
        Ok(None)
    }

    /// `[0.0 : f32, 1 : i32]`
    pub(super) fn identities(&mut self) -> Res<Vec<(DType, u64)>> {
        self.expect('[')?;
        self.list(']', |p| p.typed_number())
    }

    /// A number with its type after it, which determines how the number is read.
    fn typed_number(&mut self) -> Res<(DType, u64)> {
        if let Tok::Word(w @ ("true" | "false")) = self.tok {
            self.advance();
            if self.eat(':') {
                self.dtype()?;
            }
            return Ok((DType::I1, u64::from(w == "true")));
        }
        let start = self.span;
        self.eat('-');
        if !matches!(self.tok, Tok::Int(_) | Tok::Float(_)) {
            return self.expected("a number");
        }
        let float = matches!(self.tok, Tok::Float(_));
        self.advance();
        let dtype = match self.eat(':') {
            true => self.dtype()?,
            false if float => DType::F64,
            false => DType::I64,
        };
        let after = (self.span, self.lex.pos(), self.tok, self.last_end);
        self.seek(start.start as usize);
        let bits = self.number(dtype)?;
        self.lex.seek(after.1);
        (self.span, self.tok, self.last_end) = (after.0, after.2, after.3);
        Ok((dtype, bits))
    }

    /// `div_by<16, every 4 along 0>`, `same_elements<[2, 4]>`, `bounded<0, ?>`
    pub(super) fn assumption(&mut self) -> Res<Assumption> {
        let name = match self.tok {
            Tok::Word(w) | Tok::Hash(w) => w.strip_prefix("cuda_tile.").unwrap_or(w),
            _ => return self.expected("div_by, same_elements or bounded"),
        };
        match name {
            "div_by" => {
                self.advance();
                self.expect('<')?;
                let divisor = self.int()?;
                let (mut every, mut along) = (None, None);
                if self.eat(',') {
                    self.expect_word("every")?;
                    every = Some(self.int()?);
                    self.expect_word("along")?;
                    along = Some(self.int()?);
                }
                self.expect('>')?;
                Ok(Assumption::DivBy { divisor: divisor as u64, every, along })
            }
            "same_elements" => {
                self.advance();
                self.expect('<')?;
                self.expect('[')?;
                let values = self.list(']', |p| p.int())?;
                self.expect('>')?;
                Ok(Assumption::SameElements(values))
            }
            "bounded" => {
                self.advance();
                self.expect('<')?;
                let lb = self.bound()?;
                self.expect(',')?;
                let ub = self.bound()?;
                self.expect('>')?;
                Ok(Assumption::Bounded { lb, ub })
            }
            _ => {
                if let (Tok::Hash(alias), Some(&at)) = (self.tok, self.aliases.get(name)) {
                    let after = self.lex.pos();
                    self.seek(at);
                    let is_alias_of_itself = self.tok == Tok::Hash(alias);
                    let value = if is_alias_of_itself { Err(Failed) } else { self.nested(|p| p.assumption()) };
                    self.seek(after);
                    return value;
                }
                let d = Diagnostic::error(Code::UnknownWord, format!("unknown assumption {}", self.found()))
                    .at(self.span)
                    .maybe_help(did_you_mean(name, ["div_by", "same_elements", "bounded"]));
                self.report(d);
                Err(Failed)
            }
        }
    }

    fn bound(&mut self) -> Res<Option<i64>> {
        if self.eat('?') { Ok(None) } else { self.int().map(Some) }
    }

    /// `<sm_100 = {latency = 5}, default = {...}>`
    pub(super) fn hints(&mut self) -> Res<Hints> {
        self.expect('<')?;
        let entries = self.nested(|p| p.list('>', |p| p.named_attr()))?;
        match hint_value(AnyAttr::Dict(entries)) {
            Attr::Dict(sorted) => Ok(Hints(sorted)),
            _ => Ok(Hints::default()),
        }
    }

    /// `{a = 1, b}`; the brace is the next token.
    pub(super) fn dict(&mut self) -> Res<Vec<(String, AnyAttr)>> {
        self.expect('{')?;
        self.nested(|p| p.list('}', |p| p.named_attr()))
    }

    fn named_attr(&mut self) -> Res<(String, AnyAttr)> {
        let name = match self.tok {
            Tok::Word(w) | Tok::Str(w) => w.to_string(),
            _ => return self.expected("the name of an attribute"),
        };
        self.advance();
        let value = if self.eat('=') { self.any_attr()? } else { AnyAttr::Unit };
        Ok((name, value))
    }

    pub(super) fn any_attr(&mut self) -> Res<AnyAttr> {
        self.nested(|p| p.any_attr_inner())
    }

    fn any_attr_inner(&mut self) -> Res<AnyAttr> {
        Ok(match self.tok {
            Tok::Str(_) => AnyAttr::Str(self.string()?),
            Tok::At(_) => AnyAttr::Symbol(self.symbol()?),
            Tok::Word(w @ ("true" | "false")) => {
                self.advance();
                AnyAttr::Bool(w == "true")
            }
            Tok::Word("unit") => {
                self.advance();
                AnyAttr::Unit
            }
            Tok::Word("array") => self.dense_array()?,
            Tok::Word("dense") => {
                self.advance();
                AnyAttr::Elements(self.dense()?)
            }
            Tok::Float(_) => {
                let (d, bits) = self.typed_number()?;
                AnyAttr::Number(d, bits)
            }
            Tok::Int(_) | Tok::Punct('-') => {
                let start = self.span.start as usize;
                match self.tok == Tok::Punct('-') && matches!(self.peek(), Tok::Float(_)) {
                    true => {
                        let (d, bits) = self.typed_number()?;
                        AnyAttr::Number(d, bits)
                    }
                    false => {
                        let n = self.int()?;
                        match self.skip_number_type()? {
                            Some(d) if d.is_float() => {
                                self.seek(start);
                                let (d, bits) = self.typed_number()?;
                                AnyAttr::Number(d, bits)
                            }
                            d => AnyAttr::Int(n, d),
                        }
                    }
                }
            }
            Tok::Punct('[') => {
                self.advance();
                AnyAttr::List(self.list(']', |p| p.any_attr())?)
            }
            Tok::Punct('{') => AnyAttr::Dict(self.dict()?),
            Tok::Punct('(') => {
                self.function_type()?;
                AnyAttr::FuncType
            }
            Tok::Hash(name) => self.hash_attr(name)?,
            Tok::Word(w) if types::dtype_of(w).is_some() => {
                self.advance();
                AnyAttr::Type
            }
            Tok::Word(_) | Tok::Bang(_) => {
                self.ty()?;
                AnyAttr::Type
            }
            _ => return self.expected("an attribute"),
        })
    }

    /// `array<i32: 2, 0, 1>`
    fn dense_array(&mut self) -> Res<AnyAttr> {
        self.advance();
        self.expect('<')?;
        let dtype = self.dtype()?;
        if dtype == DType::I1 {
            let values =
                if self.eat(':') { self.list('>', |p| p.boolean())? } else { self.list('>', |p| p.boolean())? };
            return Ok(AnyAttr::Bools(values));
        }
        if !self.eat(':') {
            self.expect('>')?;
            return Ok(AnyAttr::Ints(vec![]));
        }
        Ok(AnyAttr::Ints(self.list('>', |p| p.int())?))
    }

    /// `dense<[1.0, 2.0]> : tile<2xf32>`, after the word.
    fn dense(&mut self) -> Res<Elements> {
        // The type, which determines how the numbers are read, comes after them.
        let body = self.span.start as usize;
        let mut depth = 0usize;
        loop {
            match self.tok {
                Tok::Punct('<' | '[') => depth += 1,
                Tok::Punct('>' | ']') => depth = depth.saturating_sub(1),
                Tok::Eof => return self.expected("`>`"),
                _ => {}
            }
            self.advance();
            if depth == 0 {
                break;
            }
        }
        self.expect(':')?;
        let ty_span = self.span;
        let ty = self.ty()?;
        let Some(dtype) = ty.tile().and_then(TileType::num) else {
            return self.error(Code::TypeMismatch, ty_span, "dense elements need a tile type with number elements");
        };
        let after = self.span.start as usize;
        let last_end = self.last_end;
        self.seek(body);
        self.expect('<')?;
        let mut e = self.elements_body(dtype)?;
        self.expect('>')?;
        self.shape_elements(&mut e, &ty, ty_span);
        self.seek(after);
        self.last_end = last_end;
        Ok(e)
    }

    fn hash_attr(&mut self, full: &'a str) -> Res<AnyAttr> {
        let name = full.strip_prefix("cuda_tile.").unwrap_or(full);
        match name {
            "div_by" | "same_elements" | "bounded" => return Ok(AnyAttr::Assumption(self.assumption()?)),
            "optimization_hints" => {
                self.advance();
                return Ok(AnyAttr::Hints(self.hints()?));
            }
            _ => {}
        }
        if let Some(&at) = self.aliases.get(name) {
            self.expanded += 1;
            if self.expanded > MAX_EXPANDED {
                return self.error(Code::TooLarge, self.span, "the aliases of this file stand for too many attributes");
            }
            let after = self.lex.pos();
            self.seek(at);
            let value = self.any_attr();
            self.seek(after);
            return value;
        }
        if full == name && name != "cuda_tile" {
            return self.error(Code::UnknownAlias, self.span, format!("the alias `#{name}` is not defined"));
        }
        self.advance();
        self.expect('<')?;
        let mut word = String::new();
        while let Tok::Word(w) = self.tok {
            word = w.to_string();
            self.advance();
        }
        self.expect('>')?;
        Ok(AnyAttr::Word(word))
    }

    /// Converts a generic attribute to the attribute of an operation's key.
    pub(super) fn convert_attr(&mut self, info: &AttrInfo, value: AnyAttr, span: Span) -> Res<Attr> {
        fn word<T: Words>(value: &AnyAttr) -> Option<T> {
            match value {
                AnyAttr::Word(w) | AnyAttr::Str(w) => T::from_word(w),
                AnyAttr::Int(i, _) => T::WORDS.get(usize::try_from(*i).ok()?).map(|(_, v)| *v),
                _ => None,
            }
        }
        let number = |v: &AnyAttr| match *v {
            AnyAttr::Number(d, bits) => Some((d, bits)),
            AnyAttr::Int(i, d) => Some((d.unwrap_or(DType::I64), i as u64 & d.unwrap_or(DType::I64).mask())),
            AnyAttr::Bool(b) => Some((DType::I1, u64::from(b))),
            _ => None,
        };
        let converted = match (info.kind, &value) {
            (AttrKind::Unit, AnyAttr::Unit | AnyAttr::Bool(true)) => Some(Attr::Unit),
            (AttrKind::Bool, AnyAttr::Bool(b)) => Some(Attr::Bool(*b)),
            (AttrKind::Bool, AnyAttr::Unit) => Some(Attr::Bool(true)),
            (AttrKind::I64 | AttrKind::I32, AnyAttr::Int(i, _)) => Some(Attr::Int(*i)),
            (AttrKind::Str, AnyAttr::Str(s)) => Some(Attr::Str(s.clone())),
            (AttrKind::Symbol, AnyAttr::Str(s) | AnyAttr::Symbol(s)) => Some(Attr::Str(s.clone())),
            (AttrKind::I32s, AnyAttr::Ints(v)) => {
                v.iter().map(|&i| i32::try_from(i).ok()).collect::<Option<Vec<_>>>().map(Attr::I32s)
            }
            (AttrKind::Bools, AnyAttr::Bools(v)) => Some(Attr::Bools(v.clone())),
            (AttrKind::Bools, AnyAttr::Ints(v)) => Some(Attr::Bools(v.iter().map(|&i| i != 0).collect())),
            (AttrKind::Rounding, v) => word(v).map(Attr::Rounding),
            (AttrKind::Signedness, v) => word(v).map(Attr::Signedness),
            (AttrKind::Overflow, v) => word(v).map(Attr::Overflow),
            (AttrKind::Predicate, v) => word(v).map(Attr::Predicate),
            (AttrKind::Ordered, v) => word(v).map(Attr::Ordered),
            (AttrKind::MemoryOrdering, v) => word(v).map(Attr::MemoryOrdering),
            (AttrKind::MemoryScope, v) => word(v).map(Attr::MemoryScope),
            (AttrKind::Mode, v) => word(v).map(Attr::Mode),
            (AttrKind::Reduction, v) => word(v).map(Attr::Reduction),
            (AttrKind::Elements, AnyAttr::Elements(e)) => Some(Attr::Elements(e.clone())),
            (AttrKind::Identities, AnyAttr::List(v)) => {
                v.iter().map(number).collect::<Option<Vec<_>>>().map(Attr::Identities)
            }
            (AttrKind::Assumption, AnyAttr::Assumption(a)) => Some(Attr::Assumption(a.clone())),
            (AttrKind::Hints, AnyAttr::Hints(h)) => Some(Attr::Hints(h.clone())),
            _ => None,
        };
        match converted {
            Some(attr) => Ok(attr),
            None => {
                let what = match info.words() {
                    Some(words) => words.join(" or "),
                    None => info.kind.describe().into(),
                };
                self.error(Code::BadLiteral, span, format!("the attribute `{}` must be {what}", info.name))
            }
        }
    }
}

/// Hints keep numbers, truth values, strings and dictionaries sorted by key; anything else is held as a keyword.
fn hint_value(value: AnyAttr) -> Attr {
    match value {
        AnyAttr::Bool(b) => Attr::Bool(b),
        AnyAttr::Int(i, _) => Attr::Int(i),
        AnyAttr::Str(s) => Attr::Str(s),
        AnyAttr::Dict(d) => {
            let mut entries: Vec<_> = d.into_iter().map(|(k, v)| (k, hint_value(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Attr::Dict(entries)
        }
        _ => Attr::Unit,
    }
}

/// Returns true if an attribute means the same as its absence.
pub(super) fn is_default(info: &AttrInfo, attr: &Attr) -> bool {
    match attr {
        Attr::Rounding(r) => r.word() == info.default,
        Attr::Overflow(o) => o.word() == info.default,
        Attr::Reduction(r) => r.word() == info.default,
        Attr::Bools(b) => !b.contains(&true),
        _ => false,
    }
}
