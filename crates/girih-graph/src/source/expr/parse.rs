//! Tokens to statements.
//!
//! Recursive descent, one function for each level of Python's grammar. After a problem the parser goes on at the next
//! line, so that several problems are reported at once. Nesting is bounded.

mod expr;

use std::rc::Rc;

use super::ast::{Expr, Function, Kind, Param, ParamKind, Stmt, StmtKind};
use super::error::{Res, Stop, bad};
use super::lexer::{Tok, Token, tokens};
use crate::base::{Diagnostic, Span};

/// How deep expressions and blocks may nest.
const DEEPEST: u32 = 60;
/// The most problems that are reported.
const MOST: usize = 20;

const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield", "True", "False", "None",
];

/// The statements of a text.
pub fn parse(text: &str) -> Result<Vec<Stmt>, Vec<Diagnostic>> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, errors: vec![], depth: 0 };
    let mut out = vec![];
    while !parser.is_end() {
        parser.statement(&mut out);
        if parser.errors.len() >= MOST {
            break;
        }
    }
    if parser.errors.is_empty() { Ok(out) } else { Err(parser.errors) }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    errors: Vec<Diagnostic>,
    depth: u32,
}

static END: Token = Token { tok: Tok::End, span: Span { start: 0, end: 0 } };

impl Parser {
    fn token(&self) -> &Token {
        self.tokens.get(self.at).or(self.tokens.last()).unwrap_or(&END)
    }
    fn tok(&self) -> &Tok {
        &self.token().tok
    }
    fn next_tok(&self) -> &Tok {
        self.tokens.get(self.at + 1).map_or(&Tok::End, |t| &t.tok)
    }
    fn span(&self) -> Span {
        self.token().span
    }
    fn last_span(&self) -> Span {
        self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(Span::default(), |t| t.span)
    }
    fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.last_span().end.max(start.start) }
    }
    fn bump(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }
    fn is_end(&self) -> bool {
        *self.tok() == Tok::End
    }
    fn is_op(&self, op: &str) -> bool {
        matches!(self.tok(), Tok::Op(o) if *o == op)
    }
    fn eat_op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        if found {
            self.bump();
        }
        found
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.tok(), Tok::Name(n) if n == word)
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }
    fn fail<T>(&mut self, d: Diagnostic) -> Res<T> {
        self.errors.push(d);
        Err(Stop)
    }
    /// The next token, for messages.
    fn here(&self) -> String {
        match self.tok() {
            Tok::Name(n) => format!("`{n}`"),
            Tok::Op(o) => format!("`{o}`"),
            Tok::Int(_) | Tok::Float(_) => "a number".into(),
            Tok::Str(_) => "a string".into(),
            Tok::Newline => "the end of the line".into(),
            Tok::Indent => "an indented line".into(),
            Tok::Dedent => "the end of a block".into(),
            Tok::End => "the end of the text".into(),
        }
    }
    fn expected<T>(&mut self, what: &str) -> Res<T> {
        let d = bad(self.span(), format!("expected {what}, found {}", self.here()));
        self.fail(d)
    }
    fn expect_op(&mut self, op: &str) -> Res<()> {
        if self.eat_op(op) { Ok(()) } else { self.expected(&format!("`{op}`")) }
    }
    fn expect_word(&mut self, word: &str) -> Res<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }
    fn name(&mut self) -> Res<String> {
        match self.tok() {
            Tok::Name(n) if !KEYWORDS.contains(&n.as_str()) => {
                let n = n.clone();
                self.bump();
                Ok(n)
            }
            _ => self.expected("a name"),
        }
    }
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= DEEPEST {
            let d = bad(self.span(), "the text is nested too deeply");
            return self.fail(d);
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    /// One statement, or a line of several.
    fn statement(&mut self, out: &mut Vec<Stmt>) {
        let before = self.at;
        if self.statement_or_stop(out).is_err() {
            // Continues at the next line that is not indented below this one.
            let mut blocks = 0;
            while !self.is_end() {
                match self.tok() {
                    Tok::Indent => blocks += 1,
                    Tok::Dedent if blocks == 0 => break,
                    Tok::Dedent => blocks -= 1,
                    Tok::Newline if blocks == 0 && *self.next_tok() != Tok::Indent => {
                        self.bump();
                        break;
                    }
                    _ => {}
                }
                self.bump();
            }
        }
        if self.at == before {
            self.bump();
        }
    }

    fn statement_or_stop(&mut self, out: &mut Vec<Stmt>) -> Res<()> {
        let start = self.span();
        if *self.tok() == Tok::Indent {
            let d = bad(start, "unexpected indentation: no block begins before this line");
            return self.fail(d);
        }
        if matches!(self.tok(), Tok::Dedent | Tok::Newline) {
            self.bump();
            return Ok(());
        }
        if let Some(kind) = self.nested(Self::compound)? {
            out.push(Stmt { kind, span: self.since(start) });
            return Ok(());
        }
        self.simple_line(out)
    }

    /// `a = 1; b = 2` up to the end of the line.
    fn simple_line(&mut self, out: &mut Vec<Stmt>) -> Res<()> {
        loop {
            let start = self.span();
            let kind = self.nested(Self::simple)?;
            out.push(Stmt { kind, span: self.since(start) });
            let more = self.eat_op(";");
            if *self.tok() == Tok::Newline {
                self.bump();
                return Ok(());
            }
            if self.is_end() {
                return Ok(());
            }
            if !more {
                return self.expected("an operator, `;` or a new line");
            }
            // `x = 1; def ...` is not Python, but `x=torch.randn(2); for ...` is a natural thing to write on one line.
            if let Some(kind) = self.nested(Self::compound)? {
                out.push(Stmt { kind, span: self.since(start) });
                return Ok(());
            }
        }
    }

    fn compound(&mut self) -> Res<Option<StmtKind>> {
        let Tok::Name(word) = self.tok() else {
            return if self.is_op("@") { self.decorated().map(Some) } else { Ok(None) };
        };
        let span = self.span();
        match word.as_str() {
            "if" => {
                self.bump();
                let mut arms = vec![];
                let cond = self.expr()?;
                arms.push((cond, self.block()?));
                while self.eat_word("elif") {
                    let cond = self.expr()?;
                    arms.push((cond, self.block()?));
                }
                let other = if self.eat_word("else") { self.block()? } else { vec![] };
                Ok(Some(StmtKind::If(arms, other)))
            }
            "for" => {
                self.bump();
                let target = self.targets()?;
                self.expect_word("in")?;
                let iter = self.expr_list()?;
                let body = self.block()?;
                let other = if self.eat_word("else") { self.block()? } else { vec![] };
                Ok(Some(StmtKind::For { target, iter, body, other }))
            }
            "while" => {
                self.bump();
                let cond = self.expr()?;
                let body = self.block()?;
                let other = if self.eat_word("else") { self.block()? } else { vec![] };
                Ok(Some(StmtKind::While { cond, body, other }))
            }
            "def" => self.def(vec![]).map(Some),
            "class" => self.class(vec![]).map(Some),
            "with" => {
                self.bump();
                let mut items = vec![];
                loop {
                    let context = self.expr()?;
                    let target = if self.eat_word("as") { Some(self.expr()?) } else { None };
                    items.push((context, target));
                    if !self.eat_op(",") {
                        break;
                    }
                }
                let body = self.block()?;
                Ok(Some(StmtKind::With(items, body)))
            }
            "try" | "async" => {
                let d = bad(span, format!("`{word}` is not supported here"));
                self.fail(d)
            }
            _ => Ok(None),
        }
    }

    fn decorated(&mut self) -> Res<StmtKind> {
        let mut decorators = vec![];
        while self.eat_op("@") {
            decorators.push(self.expr()?);
            while *self.tok() == Tok::Newline {
                self.bump();
            }
        }
        if self.is_word("class") { self.class(decorators) } else { self.def(decorators) }
    }

    fn block(&mut self) -> Res<Vec<Stmt>> {
        self.expect_op(":")?;
        let mut out = vec![];
        if *self.tok() != Tok::Newline {
            self.simple_line(&mut out)?;
            return Ok(out);
        }
        self.bump();
        if *self.tok() != Tok::Indent {
            return self.expected("an indented block");
        }
        self.bump();
        while !matches!(self.tok(), Tok::Dedent | Tok::End) {
            self.statement(&mut out);
            if self.errors.len() >= MOST {
                return Err(Stop);
            }
        }
        if *self.tok() == Tok::Dedent {
            self.bump();
        }
        Ok(out)
    }

    fn def(&mut self, decorators: Vec<Expr>) -> Res<StmtKind> {
        self.expect_word("def")?;
        let name = self.name()?;
        self.expect_op("(")?;
        let params = self.params(")", true)?;
        self.expect_op(")")?;
        if self.eat_op("->") {
            self.expr()?;
        }
        let body = self.block()?;
        Ok(StmtKind::Def(Rc::new(Function { doc: doc(&body), name, params, body }), decorators))
    }

    fn params(&mut self, end: &str, annotated: bool) -> Res<Vec<Param>> {
        let mut params: Vec<Param> = vec![];
        let mut kind = ParamKind::Plain;
        while !self.is_op(end) {
            let span = self.span();
            if self.eat_op("/") {
            } else if self.is_op("*") && matches!(self.next_tok(), Tok::Op(",")) {
                self.bump();
                kind = ParamKind::KeywordOnly;
            } else {
                let own = if self.eat_op("**") {
                    ParamKind::Keywords
                } else if self.eat_op("*") {
                    ParamKind::Rest
                } else {
                    kind
                };
                let name = self.name()?;
                if annotated && self.eat_op(":") {
                    self.expr()?;
                }
                let default = if self.eat_op("=") { Some(self.expr()?) } else { None };
                if params.iter().any(|p| p.name == name) {
                    let d = bad(span, format!("two parameters are named `{name}`"));
                    return self.fail(d);
                }
                params.push(Param { name, kind: own, default });
                if own == ParamKind::Rest {
                    kind = ParamKind::KeywordOnly;
                }
            }
            if !self.eat_op(",") {
                break;
            }
        }
        Ok(params)
    }

    fn class(&mut self, decorators: Vec<Expr>) -> Res<StmtKind> {
        self.expect_word("class")?;
        let name = self.name()?;
        let mut bases = vec![];
        if self.eat_op("(") {
            while !self.is_op(")") {
                bases.push(self.expr()?);
                if !self.eat_op(",") {
                    break;
                }
            }
            self.expect_op(")")?;
        }
        let body = self.block()?.into();
        Ok(StmtKind::Class { name, bases, body, decorators })
    }

    fn simple(&mut self) -> Res<StmtKind> {
        let span = self.span();
        if let Tok::Name(word) = self.tok().clone() {
            match word.as_str() {
                "pass" => {
                    self.bump();
                    return Ok(StmtKind::Nothing);
                }
                "break" => {
                    self.bump();
                    return Ok(StmtKind::Break);
                }
                "continue" => {
                    self.bump();
                    return Ok(StmtKind::Continue);
                }
                "return" => {
                    self.bump();
                    let ends = matches!(self.tok(), Tok::Newline | Tok::End | Tok::Op(";"));
                    return Ok(StmtKind::Return(if ends { None } else { Some(self.expr_list()?) }));
                }
                "raise" => {
                    self.bump();
                    let ends = matches!(self.tok(), Tok::Newline | Tok::End | Tok::Op(";"));
                    return Ok(StmtKind::Raise(if ends { None } else { Some(self.expr()?) }));
                }
                "assert" => {
                    self.bump();
                    let cond = self.expr()?;
                    let message = if self.eat_op(",") { Some(self.expr()?) } else { None };
                    return Ok(StmtKind::Assert(cond, message));
                }
                "import" => {
                    self.bump();
                    let mut names = vec![];
                    loop {
                        let path = self.path()?;
                        let alias = if self.eat_word("as") { Some(self.name()?) } else { None };
                        names.push((path, alias));
                        if !self.eat_op(",") {
                            return Ok(StmtKind::Import(names));
                        }
                    }
                }
                "from" => {
                    self.bump();
                    let path = self.path()?;
                    self.expect_word("import")?;
                    let parenthesised = self.eat_op("(");
                    let mut names = vec![];
                    loop {
                        let name = self.name()?;
                        let alias = if self.eat_word("as") { Some(self.name()?) } else { None };
                        names.push((name, alias));
                        if !self.eat_op(",") || self.is_op(")") {
                            break;
                        }
                    }
                    if parenthesised {
                        self.expect_op(")")?;
                    }
                    return Ok(StmtKind::From(path, names));
                }
                "del" | "global" | "nonlocal" | "yield" | "await" | "match" | "except" | "finally"
                    if !matches!(self.next_tok(), Tok::Op(_)) || word != "match" =>
                {
                    let d = bad(span, format!("`{word}` is not supported here"));
                    return self.fail(d);
                }
                _ => {}
            }
        }
        let first = self.expr_list()?;
        if let Tok::Op(op) = self.tok()
            && let Some(binary) = expr::augmented(op)
        {
            self.check_target(&first, true)?;
            self.bump();
            let value = self.expr_list()?;
            return Ok(StmtKind::Augmented(first, binary, value));
        }
        if self.is_op(":") && matches!(first.kind, Kind::Name(_) | Kind::Attribute(..)) {
            self.bump();
            self.expr()?;
            if !self.is_op("=") {
                return Ok(StmtKind::Nothing);
            }
        }
        if !self.is_op("=") {
            return Ok(StmtKind::Expr(first));
        }
        let mut parts = vec![first];
        while self.eat_op("=") {
            parts.push(self.expr_list()?);
        }
        let Some(value) = parts.pop() else { return self.expected("an expression") };
        for p in &parts {
            self.check_target(p, false)?;
        }
        Ok(StmtKind::Assign(parts, value))
    }

    /// `torch.nn.functional`
    fn path(&mut self) -> Res<String> {
        let mut path = self.name()?;
        while self.eat_op(".") {
            path.push('.');
            path.push_str(&self.name()?);
        }
        Ok(path)
    }

    fn check_target(&mut self, target: &Expr, single: bool) -> Res<()> {
        match &target.kind {
            Kind::Name(_) | Kind::Attribute(..) | Kind::Subscript(..) => Ok(()),
            Kind::Tuple(parts) | Kind::List(parts) if !single => {
                for p in parts {
                    let inner = if let Kind::Starred(inner) = &p.kind { inner } else { p };
                    self.check_target(inner, false)?;
                }
                Ok(())
            }
            _ => {
                let d = bad(target.span, "this cannot be assigned to");
                self.fail(d)
            }
        }
    }
}

fn doc(body: &[Stmt]) -> Option<Rc<str>> {
    match &body.first()?.kind {
        StmtKind::Expr(Expr { kind: Kind::Str(text), .. }) => Some(text.clone()),
        _ => None,
    }
}
