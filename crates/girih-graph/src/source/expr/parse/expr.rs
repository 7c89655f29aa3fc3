//! Expressions, from the loosest operator to the tightest.

use std::rc::Rc;

use super::{KEYWORDS, Parser};
use crate::base::Span;
use crate::source::expr::ast::{Argument, Binary, Clause, Compare, Expr, Function, Kind, Stmt, StmtKind, Unary};
use crate::source::expr::error::{Res, bad};
use crate::source::expr::lexer::Tok;

/// The operator of `+=` and its like.
pub(super) fn augmented(op: &str) -> Option<Binary> {
    Some(match op {
        "+=" => Binary::Add,
        "-=" => Binary::Sub,
        "*=" => Binary::Mul,
        "/=" => Binary::Div,
        "//=" => Binary::FloorDiv,
        "%=" => Binary::Mod,
        "**=" => Binary::Pow,
        "@=" => Binary::MatMul,
        "&=" => Binary::And,
        "|=" => Binary::Or,
        "^=" => Binary::Xor,
        "<<=" => Binary::Shl,
        ">>=" => Binary::Shr,
        _ => return None,
    })
}

/// Binary operators by level: the first binds loosest.
const LEVELS: &[&[(&str, Binary)]] = &[
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("<<", Binary::Shl), (">>", Binary::Shr)],
    &[("+", Binary::Add), ("-", Binary::Sub)],
    &[("*", Binary::Mul), ("/", Binary::Div), ("//", Binary::FloorDiv), ("%", Binary::Mod), ("@", Binary::MatMul)],
];

impl Parser {
    fn make(&self, start: Span, kind: Kind) -> Expr {
        Expr { kind, span: self.since(start) }
    }

    /// `a, b` is a tuple.
    pub(super) fn expr_list(&mut self) -> Res<Expr> {
        let start = self.span();
        let first = self.starred()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_op(",") {
            if !self.starts_expr() {
                break;
            }
            parts.push(self.starred()?);
        }
        Ok(self.make(start, Kind::Tuple(parts)))
    }

    fn starts_expr(&self) -> bool {
        match self.tok() {
            Tok::Name(n) => {
                !KEYWORDS.contains(&n.as_str())
                    || matches!(n.as_str(), "not" | "lambda" | "True" | "False" | "None" | "await" | "yield")
            }
            Tok::Int(_) | Tok::Float(_) | Tok::Str(_) => true,
            Tok::Op(o) => matches!(*o, "(" | "[" | "{" | "-" | "+" | "~" | "..." | "*"),
            _ => false,
        }
    }

    fn starred(&mut self) -> Res<Expr> {
        let start = self.span();
        if self.eat_op("*") {
            let inner = self.level(0)?;
            return Ok(self.make(start, Kind::Starred(Box::new(inner))));
        }
        self.expr()
    }

    /// The targets of `for`: no `in` operator.
    pub(super) fn targets(&mut self) -> Res<Expr> {
        let start = self.span();
        let first = self.level(0)?;
        if !self.is_op(",") {
            self.check_target(&first, false)?;
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_op(",") {
            if self.is_word("in") {
                break;
            }
            parts.push(self.level(0)?);
        }
        let all = self.make(start, Kind::Tuple(parts));
        self.check_target(&all, false)?;
        Ok(all)
    }

    /// One expression; no comma.
    pub(super) fn expr(&mut self) -> Res<Expr> {
        self.nested(|p| {
            let start = p.span();
            if p.is_word("lambda") {
                return p.lambda();
            }
            let value = p.or()?;
            if p.is_op(":=") {
                let d = bad(p.span(), "`:=` is not supported here").help("assign in a statement of its own");
                return p.fail(d);
            }
            if !p.is_word("if") {
                return Ok(value);
            }
            p.bump();
            let cond = p.or()?;
            p.expect_word("else")?;
            let other = p.expr()?;
            let kind = Kind::IfElse { cond: cond.into(), then: value.into(), other: other.into() };
            Ok(p.make(start, kind))
        })
    }

    fn lambda(&mut self) -> Res<Expr> {
        let start = self.span();
        self.bump();
        let params = self.params(":", false)?;
        self.expect_op(":")?;
        let body = self.expr()?;
        let span = body.span;
        let body = vec![Stmt { kind: StmtKind::Return(Some(body)), span }];
        let function = Function { name: "<lambda>".into(), params, body, doc: None };
        Ok(self.make(start, Kind::Lambda(Rc::new(function))))
    }

    fn or(&mut self) -> Res<Expr> {
        let start = self.span();
        let mut parts = vec![self.and()?];
        while self.eat_word("or") {
            parts.push(self.and()?);
        }
        Ok(if parts.len() > 1 { self.make(start, Kind::Or(parts)) } else { only(parts) })
    }

    fn and(&mut self) -> Res<Expr> {
        let start = self.span();
        let mut parts = vec![self.not()?];
        while self.eat_word("and") {
            parts.push(self.not()?);
        }
        Ok(if parts.len() > 1 { self.make(start, Kind::And(parts)) } else { only(parts) })
    }

    fn not(&mut self) -> Res<Expr> {
        let start = self.span();
        if self.eat_word("not") {
            let inner = self.nested(Self::not)?;
            return Ok(self.make(start, Kind::Unary(Unary::Not, inner.into())));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Res<Expr> {
        let start = self.span();
        let first = self.level(0)?;
        let mut rest = vec![];
        loop {
            let op = match self.tok() {
                Tok::Op("==") => Compare::Eq,
                Tok::Op("!=") => Compare::Ne,
                Tok::Op("<") => Compare::Lt,
                Tok::Op("<=") => Compare::Le,
                Tok::Op(">") => Compare::Gt,
                Tok::Op(">=") => Compare::Ge,
                Tok::Name(n) if n == "in" => Compare::In,
                Tok::Name(n) if n == "is" => Compare::Is,
                Tok::Name(n) if n == "not" && matches!(self.next_tok(), Tok::Name(i) if i == "in") => Compare::NotIn,
                _ => break,
            };
            self.bump();
            let op = match op {
                Compare::NotIn => {
                    self.bump();
                    op
                }
                Compare::Is if self.eat_word("not") => Compare::IsNot,
                _ => op,
            };
            rest.push((op, self.level(0)?));
        }
        Ok(if rest.is_empty() { first } else { self.make(start, Kind::Compare(first.into(), rest)) })
    }

    fn level(&mut self, at: usize) -> Res<Expr> {
        let Some(operators) = LEVELS.get(at) else { return self.unary() };
        let start = self.span();
        let mut left = self.level(at + 1)?;
        // A chain is as deep as it is long.
        let mut length = 0;
        while let Tok::Op(op) = self.tok()
            && let Some((_, binary)) = operators.iter().find(|(text, _)| text == op)
        {
            length += 1;
            if length > 500 {
                let d = bad(self.span(), "this expression has too many operators in a row");
                return self.fail(d);
            }
            self.bump();
            let right = self.level(at + 1)?;
            left = self.make(start, Kind::Binary(*binary, left.into(), right.into()));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Res<Expr> {
        let start = self.span();
        let op = match self.tok() {
            Tok::Op("-") => Unary::Neg,
            Tok::Op("+") => Unary::Pos,
            Tok::Op("~") => Unary::Invert,
            _ => return self.power(),
        };
        self.bump();
        let inner = self.nested(Self::unary)?;
        let kind = match (op, inner.kind) {
            (Unary::Neg, Kind::Int(x)) => Kind::Int(-x),
            (Unary::Neg, Kind::Float(x)) => Kind::Float(-x),
            (op, kind) => Kind::Unary(op, Expr { kind, span: inner.span }.into()),
        };
        Ok(self.make(start, kind))
    }

    fn power(&mut self) -> Res<Expr> {
        let start = self.span();
        let base = self.postfix()?;
        if !self.eat_op("**") {
            return Ok(base);
        }
        let exponent = self.nested(Self::unary)?;
        Ok(self.make(start, Kind::Binary(Binary::Pow, base.into(), exponent.into())))
    }

    fn postfix(&mut self) -> Res<Expr> {
        let start = self.span();
        let mut value = self.atom()?;
        let mut length = 0;
        loop {
            length += 1;
            if length > 64 {
                let d = bad(self.span(), "this expression has too many calls in a row");
                return self.fail(d);
            }
            if self.eat_op(".") {
                let name = self.name()?;
                value = self.make(start, Kind::Attribute(value.into(), name));
            } else if self.eat_op("(") {
                let args = self.arguments()?;
                value = self.make(start, Kind::Call(value.into(), args));
            } else if self.eat_op("[") {
                let index = self.subscript()?;
                self.expect_op("]")?;
                value = self.make(start, Kind::Subscript(value.into(), index.into()));
            } else {
                return Ok(value);
            }
        }
    }

    fn arguments(&mut self) -> Res<Vec<Argument>> {
        let mut args = vec![];
        while !self.is_op(")") {
            let span = self.span();
            if self.eat_op("**") {
                args.push(Argument::SpreadKeywords(self.expr()?));
            } else if self.eat_op("*") {
                args.push(Argument::Spread(self.expr()?));
            } else if matches!(self.tok(), Tok::Name(_)) && matches!(self.next_tok(), Tok::Op("=")) {
                let name = self.name()?;
                self.bump();
                args.push(Argument::Keyword(name, span, self.expr()?));
            } else {
                let value = self.expr()?;
                let value = if self.is_word("for") {
                    let clauses = self.clauses()?;
                    self.make(span, Kind::Comprehension { element: value.into(), value: None, clauses })
                } else {
                    value
                };
                args.push(Argument::Positional(value));
            }
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op(")")?;
        Ok(args)
    }

    fn subscript(&mut self) -> Res<Expr> {
        let start = self.span();
        let first = self.slice()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_op(",") {
            if self.is_op("]") {
                break;
            }
            parts.push(self.slice()?);
        }
        Ok(self.make(start, Kind::Tuple(parts)))
    }

    fn slice(&mut self) -> Res<Expr> {
        let start = self.span();
        let first = if self.is_op(":") { None } else { Some(self.starred()?) };
        if !self.is_op(":") {
            return match first {
                Some(e) => Ok(e),
                None => self.expected("an index"),
            };
        }
        self.bump();
        let ends = |p: &Self| p.is_op(":") || p.is_op(",") || p.is_op("]");
        let stop = if ends(self) { None } else { Some(Box::new(self.expr()?)) };
        let step = if self.eat_op(":") && !ends(self) { Some(Box::new(self.expr()?)) } else { None };
        Ok(self.make(start, Kind::Slice(first.map(Box::new), stop, step)))
    }

    fn clauses(&mut self) -> Res<Vec<Clause>> {
        let mut clauses = vec![];
        loop {
            if self.eat_word("for") {
                let target = self.targets()?;
                self.expect_word("in")?;
                let iter = self.or()?;
                clauses.push(Clause::For(target, iter));
            } else if self.eat_word("if") {
                clauses.push(Clause::If(self.or()?));
            } else {
                return Ok(clauses);
            }
        }
    }

    fn atom(&mut self) -> Res<Expr> {
        let start = self.span();
        let kind = match self.tok().clone() {
            Tok::Int(x) => Kind::Int(x),
            Tok::Float(x) => Kind::Float(x),
            Tok::Str(mut text) => {
                while let Tok::Str(more) = self.next_tok() {
                    text.push_str(more);
                    self.bump();
                }
                Kind::Str(text.into())
            }
            Tok::Op("...") => Kind::Ellipsis,
            Tok::Op("(") => return self.parenthesised(),
            Tok::Op("[") => return self.list(),
            Tok::Op("{") => return self.dict(),
            Tok::Name(word) => match word.as_str() {
                "None" => Kind::None,
                "True" => Kind::Bool(true),
                "False" => Kind::Bool(false),
                "yield" | "await" => {
                    let d = bad(start, format!("`{word}` is not supported here"));
                    return self.fail(d);
                }
                w if KEYWORDS.contains(&w) => return self.expected("an expression"),
                _ => Kind::Name(word),
            },
            _ => return self.expected("an expression"),
        };
        self.bump();
        Ok(self.make(start, kind))
    }

    fn parenthesised(&mut self) -> Res<Expr> {
        let start = self.span();
        self.bump();
        if self.eat_op(")") {
            return Ok(self.make(start, Kind::Tuple(vec![])));
        }
        let inner = self.nested(Self::expr_list)?;
        let inner = if self.is_word("for") {
            let clauses = self.clauses()?;
            self.make(start, Kind::Comprehension { element: inner.into(), value: None, clauses })
        } else {
            inner
        };
        self.expect_op(")")?;
        Ok(Expr { kind: inner.kind, span: self.since(start) })
    }

    fn list(&mut self) -> Res<Expr> {
        let start = self.span();
        self.bump();
        let mut parts = vec![];
        while !self.is_op("]") {
            let value = self.starred()?;
            if self.is_word("for") && parts.is_empty() {
                let clauses = self.clauses()?;
                self.expect_op("]")?;
                return Ok(self.make(start, Kind::Comprehension { element: value.into(), value: None, clauses }));
            }
            parts.push(value);
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op("]")?;
        Ok(self.make(start, Kind::List(parts)))
    }

    fn dict(&mut self) -> Res<Expr> {
        let start = self.span();
        self.bump();
        let mut parts = vec![];
        while !self.is_op("}") {
            let key = self.expr()?;
            if !self.is_op(":") {
                let d = bad(key.span, "sets are not supported here").help("write a list: `[a, b]`");
                return self.fail(d);
            }
            self.bump();
            let value = self.expr()?;
            if self.is_word("for") && parts.is_empty() {
                let clauses = self.clauses()?;
                self.expect_op("}")?;
                let value = Some(Box::new(value));
                return Ok(self.make(start, Kind::Comprehension { element: key.into(), value, clauses }));
            }
            parts.push((key, value));
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op("}")?;
        Ok(self.make(start, Kind::Dict(parts)))
    }
}

fn only(mut parts: Vec<Expr>) -> Expr {
    parts.pop().unwrap_or(Expr { kind: Kind::None, span: Span::default() })
}
