//! The small parts of statements: operands, memory accesses, masks, index expressions.

use super::{Parser, Raw, Res, Thing};
use crate::base::Code;
use crate::base::lines::{Tok, error};
use crate::loops::ir::*;
use crate::loops::print::{CMPS, ORDERS};
use crate::num::DType;
use crate::num::literal::parse_const;

/// How deep an index expression may nest, operators of one chain included.
const MAX_IX: usize = 200;

impl Parser<'_, '_> {
    // Operands, memory, masks.

    pub(super) fn raw_opnd(&mut self) -> Res<Raw> {
        let span = self.span();
        let minus = self.eat("-");
        let text = match *self.tok() {
            Tok::Number(n) => n,
            Tok::Word(w @ ("inf" | "nan" | "true" | "false")) => w,
            _ if minus => return self.expected("a number"),
            _ => return Ok(Raw::Val(self.val()?)),
        };
        self.next();
        let text = if minus { format!("-{text}") } else { text.to_string() };
        let dtype = if text == "true" || text == "false" { Some(DType::I1) } else { None };
        let typed = self.is_punct(":") && matches!(self.peek(1), Tok::Word(w) if DType::from_name(w).is_some());
        if !typed {
            return Ok(Raw::Const { text, dtype, span });
        }
        self.next();
        Ok(Raw::Const { text, dtype: Some(self.dtype()?), span })
    }

    pub(super) fn raw_ty(&self, raw: &Raw) -> Option<Ty> {
        match raw {
            Raw::Val(v) => self.kernel.vals.get(*v).map(|v| v.ty),
            Raw::Const { dtype, .. } => dtype.map(Ty::Num),
        }
    }

    pub(super) fn resolve(&self, raw: Raw, expected: Option<DType>) -> Res<Opnd> {
        match raw {
            Raw::Val(v) => Ok(Opnd::Val(v)),
            Raw::Const { text, dtype, span } => {
                let Some(dtype) = dtype.or(expected) else {
                    let help = format!("write `{text}:i32`, or another type");
                    return Err(error(Code::MalformedIr, span, "this constant needs its type").help(help));
                };
                match parse_const(dtype, &text) {
                    Some(bits) => Ok(Opnd::Const { dtype, bits }),
                    None => Err(error(
                        Code::MalformedIr,
                        span,
                        format!("expected a constant of type {dtype}, found `{text}`"),
                    )),
                }
            }
        }
    }

    pub(super) fn opnd(&mut self, expected: Option<DType>) -> Res<Opnd> {
        let raw = self.raw_opnd()?;
        self.resolve(raw, expected)
    }

    pub(super) fn constant(&mut self, dtype: DType) -> Res<u64> {
        let span = self.span();
        match self.opnd(Some(dtype))? {
            Opnd::Const { dtype: found, bits } if found == dtype => Ok(bits),
            _ => Err(error(Code::MalformedIr, span, format!("expected a constant of type {dtype}"))),
        }
    }

    pub(super) fn mem(&mut self) -> Res<Mem> {
        let span = self.span();
        let base = self.val()?;
        let elem = match self.kernel.vals.get(base).map(|v| v.ty) {
            _ if self.eat_word("as") => self.dtype()?,
            Some(Ty::Ptr(elem)) => elem,
            _ => return Err(error(Code::MalformedIr, span, "this value is not a pointer")),
        };
        self.punct("[")?;
        let index = self.ix()?;
        self.punct("]")?;
        Ok(Mem { base, index, elem })
    }

    pub(super) fn tail(&mut self) -> Res<(Order, SiteId)> {
        let ordered = matches!(self.tok(), Tok::Word(w) if ORDERS.iter().any(|(n, _)| n == w));
        let order = if ordered { self.table(&ORDERS, "a memory order")? } else { Order::Weak };
        Ok((order, self.site()?))
    }

    pub(super) fn site(&mut self) -> Res<SiteId> {
        let op = if self.eat("!") { self.name_or_string()? } else { String::new() };
        Ok(self.kernel.sites.push(Site { op, ..Site::default() }))
    }

    pub(super) fn where_clause(&mut self) -> Res<Mask> {
        if self.eat_word("where") { self.mask() } else { Ok(Mask::default()) }
    }

    pub(super) fn mask(&mut self) -> Res<Mask> {
        let mut mask = Mask::default();
        if self.eat_word("true") {
            return Ok(mask);
        }
        loop {
            let lhs = self.ix()?;
            let compares = matches!(self.tok(), Tok::Punct(p) if CMPS.iter().any(|(n, _)| n == p));
            match lhs {
                lhs if compares => {
                    let cmp = self.table(&CMPS, "a comparison")?;
                    mask.conds.push(Cond { lhs, cmp, rhs: self.ix()? });
                }
                Ix::Val { val, zext: false } => mask.vals.push(val),
                _ => return self.expected("a comparison"),
            }
            if !self.eat_word("and") {
                return Ok(mask);
            }
        }
    }

    // Index expressions. Each level returns how deep its tree is.

    pub(super) fn ix(&mut self) -> Res<Ix> {
        Ok(self.sum(0)?.0)
    }

    pub(super) fn join(&self, a: (Ix, usize), b: (Ix, usize), make: fn(Box<Ix>, Box<Ix>) -> Ix) -> Res<(Ix, usize)> {
        let depth = a.1.max(b.1) + 1;
        if depth > MAX_IX {
            return self.fail("the index expression nests too deeply");
        }
        Ok((make(Box::new(a.0), Box::new(b.0)), depth))
    }

    pub(super) fn sum(&mut self, level: usize) -> Res<(Ix, usize)> {
        let mut left = self.product(level)?;
        loop {
            let make = match self.tok() {
                Tok::Punct("+") => Ix::Add,
                Tok::Punct("-") => Ix::Sub,
                _ => return Ok(left),
            };
            self.next();
            let right = self.product(level)?;
            left = self.join(left, right, make)?;
        }
    }

    pub(super) fn product(&mut self, level: usize) -> Res<(Ix, usize)> {
        let mut left = self.atom(level)?;
        loop {
            let make = match self.tok() {
                Tok::Punct("*") => Ix::Mul,
                Tok::Punct("//") => Ix::FloorDiv,
                Tok::Punct("%") => Ix::Mod,
                _ => return Ok(left),
            };
            self.next();
            let right = self.atom(level)?;
            left = self.join(left, right, make)?;
        }
    }

    pub(super) fn atom(&mut self, level: usize) -> Res<(Ix, usize)> {
        if level > MAX_IX {
            return self.fail("the index expression nests too deeply");
        }
        let leaf = match *self.tok() {
            Tok::Number(_) | Tok::Punct("-") => Ix::Const(self.number()?),
            Tok::Punct("(") => {
                self.next();
                let inner = self.sum(level + 1)?;
                self.punct(")")?;
                return Ok(inner);
            }
            Tok::Word(w @ ("min" | "max")) => {
                self.next();
                self.punct("(")?;
                let a = self.sum(level + 1)?;
                self.punct(",")?;
                let b = self.sum(level + 1)?;
                self.punct(")")?;
                return self.join(a, b, if w == "min" { Ix::Min } else { Ix::Max });
            }
            Tok::Word("zext") => {
                self.next();
                self.punct("(")?;
                let val = self.val()?;
                self.punct(")")?;
                Ix::Val { val, zext: true }
            }
            Tok::Word(w @ ("bx" | "by" | "bz" | "gx" | "gy" | "gz")) => {
                self.next();
                let d = match w.as_bytes()[1] {
                    b'x' => 0,
                    b'y' => 1,
                    _ => 2,
                };
                if w.starts_with('b') { Ix::Block(d) } else { Ix::Grid(d) }
            }
            _ => match self.lookup("an index expression")? {
                (Thing::Val(val), _) => Ix::Val { val, zext: false },
                (Thing::Axis(axis), _) => Ix::Axis(axis),
                (thing, span) => return Self::wrong_kind(thing, span, "an index"),
            },
        };
        Ok((leaf, 0))
    }
}
