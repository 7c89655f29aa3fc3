//! Kernel IR read back from its text, line by line: the inverse of `print::print`.

use super::ir::*;
use super::print::{FENCES, MBARRIER, SHUFFLES, SPACES};
use crate::base::lines::unquote;
use crate::base::{Code, Diagnostic, Label, Span};
use crate::index::text::{Tokens, launch_leaf, read_ix, read_mask};
use crate::loops;
use crate::loops::print::{ORDERS, RMWS, of_word};
use crate::num::literal::parse_const;
use crate::num::spell::{Class, parse_op};
use crate::num::{DType, ScalarOp};
use rustc_hash::FxHashMap;

/// The kernel that a text holds; the diagnostic says what the line that fails should have been.
pub fn parse(text: &str) -> Result<Kernel, Diagnostic> {
    parse_located(text).map(|(kernel, _)| kernel)
}

/// The kernel, and where each of its statements stands, in the order of the text; those inside others count too.
pub fn parse_located(text: &str) -> Result<(Kernel, Vec<Span>), Diagnostic> {
    let names = FxHashMap::default();
    let mut p = Parser { k: Kernel::default(), names, lines: lines(text), at: 0, statements: vec![] };
    match p.kernel() {
        Ok(()) => Ok((p.k, p.statements)),
        Err(message) => {
            let line = p.lines.get(p.at.saturating_sub(1)).or(p.lines.last());
            let span = line.map_or(Span::default(), |l| l.span);
            Err(Diagnostic::error(Code::MalformedIr, message).at(span))
        }
    }
}

type Res<T> = Result<T, String>;

fn ident(name: &str) -> Res<Ident> {
    Ident::parse(name).ok_or_else(|| format!("`{name}` cannot be used as a name"))
}

struct Line<'a> {
    tokens: Vec<&'a str>,
    span: Span,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let tokens = tokens(line.trim());
        if !tokens.is_empty() {
            let from = start + line.len() - line.trim_start().len();
            out.push(Line { tokens, span: Span::new(from, start + line.trim_end().len()) });
        }
        start += line.len();
    }
    out
}

/// Words (with inner dots and signed exponents), and punctuation.
fn tokens(line: &str) -> Vec<&str> {
    let bytes = line.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut out = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        let start = i;
        if bytes[i] == b'#' {
            break;
        } else if bytes[i] == b'"' {
            i += 1;
            while i < bytes.len() && bytes[i] != b'"' {
                // In the name of a kernel a `\` begins `\u{..}`, so nothing is lost there.
                i += 1 + (bytes[i] == b'\\') as usize;
            }
            i = (i + 1).min(bytes.len());
            while !line.is_char_boundary(i) {
                i += 1;
            }
        } else if word(bytes[i]) {
            let number = bytes[i].is_ascii_digit();
            while i < bytes.len() {
                let next = bytes.get(i + 1).copied().unwrap_or(b' ');
                let exponent = number && matches!(bytes[i], b'e' | b'E') && matches!(next, b'-' | b'+');
                if exponent && !line[start..].starts_with("0x") {
                    i += 2;
                } else if word(bytes[i]) || (bytes[i] == b'.' && word(next)) {
                    i += 1;
                } else {
                    break;
                }
            }
        } else if bytes[i].is_ascii_whitespace() {
            i += 1;
            continue;
        } else {
            let pairs = ["..", "//", "==", "!=", "<=", ">="];
            i += if pairs.iter().any(|p| line[i..].starts_with(p)) { 2 } else { 1 };
            while !line.is_char_boundary(i) {
                i += 1;
            }
        }
        out.push(&line[start..i]);
    }
    out
}

#[derive(Clone, Copy)]
enum Name {
    Val(ValId),
    Axis(AxisId),
    Slot(BufId),
    Tensor(TensorId),
}

struct Parser<'a> {
    k: Kernel,
    names: FxHashMap<&'a str, Name>,
    lines: Vec<Line<'a>>,
    at: usize,
    /// Where the statements read so far stand.
    statements: Vec<Span>,
}

/// The tokens of a line that are left.
struct Cursor<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }
    fn next(&mut self) -> &'a str {
        let t = self.peek();
        self.at += 1;
        t
    }
    fn eat(&mut self, token: &str) -> bool {
        let is = self.peek() == token;
        self.at += is as usize;
        is
    }
    /// What comes next, for a message.
    fn found(&self) -> String {
        match self.peek() {
            "" => "the end of the line".to_string(),
            token => format!("`{token}`"),
        }
    }
    fn expect(&mut self, token: &str) -> Res<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("expected `{token}`, found {}", self.found())) }
    }
    fn end(&self) -> Res<()> {
        match self.at < self.tokens.len() {
            true => Err(format!("expected the end of the line, found `{}`", self.peek())),
            false => Ok(()),
        }
    }
    fn int<T: std::str::FromStr>(&mut self) -> Res<T> {
        let t = self.next();
        t.parse().map_err(|_| format!("expected a number, found `{t}`"))
    }
    /// What a string in quotes says.
    fn string(&mut self) -> Res<String> {
        let found = self.found();
        unquote(self.next()).ok_or_else(|| format!("expected a string in quotes, found {found}"))
    }
    fn constant(&mut self, dtype: DType) -> Res<u64> {
        let minus = if self.eat("-") { "-" } else { "" };
        let text = format!("{minus}{}", self.next());
        parse_const(dtype, &text).ok_or(format!("expected a constant of type {dtype}, found `{text}`"))
    }
    fn site(&mut self) -> Res<SiteId> {
        self.expect("site")?;
        self.int().map(SiteId)
    }
}

/// Index expressions on a line, and what names mean in them.
struct Indices<'p, 'a> {
    parser: &'p Parser<'a>,
    c: &'p mut Cursor<'a>,
}

impl Tokens for Indices<'_, '_> {
    type Error = String;

    fn take(&mut self, text: &str) -> bool {
        self.c.eat(text)
    }
    fn calls(&self, word: &str) -> bool {
        self.c.peek() == word && self.c.tokens.get(self.c.at + 1) == Some(&"(")
    }
    fn unexpected(&self, wanted: &str) -> String {
        format!("expected {wanted}, found {}", self.c.found())
    }
    fn error(&self, message: &str) -> String {
        message.to_string()
    }
    fn leaf(&mut self) -> Res<Ix> {
        let minus = if self.c.eat("-") { "-" } else { "" };
        let word = self.c.next();
        match self.parser.names.get(word) {
            _ if !minus.is_empty() => {}
            _ if word == "zext" => {
                self.c.expect("(")?;
                let val = self.parser.val(self.c.next())?;
                self.c.expect(")")?;
                return Ok(Ix::Val { val, zext: true });
            }
            Some(Name::Axis(axis)) => return Ok(Ix::Axis(*axis)),
            Some(Name::Val(val)) => return Ok(Ix::Val { val: *val, zext: false }),
            _ => {}
        }
        let number = || format!("{minus}{word}").parse().map(Ix::Const);
        launch_leaf(word).map_or_else(number, Ok).map_err(|_| format!("expected an index, found `{minus}{word}`"))
    }
}

impl<'a> Parser<'a> {
    fn line(&mut self) -> Res<Cursor<'a>> {
        let line = self.lines.get_mut(self.at).ok_or("the text ends before the kernel does")?;
        self.at += 1;
        Ok(Cursor { tokens: std::mem::take(&mut line.tokens), at: 0 })
    }

    fn kernel(&mut self) -> Res<()> {
        let mut c = self.line()?;
        c.expect("kernel")?;
        let name = c.next();
        let quoted = name.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
        self.k.name =
            Label::parse(quoted.unwrap_or(name)).ok_or(format!("expected the name of a kernel, found `{name}`"))?;
        c.expect("(")?;
        while c.peek() != ")" {
            let val = self.define(&mut c)?;
            self.k.params.push(val);
            if !c.eat(",") {
                break;
            }
        }
        c.expect(")")?;
        if c.eat("grid") {
            c.expect("(")?;
            let x = self.ix(&mut c)?;
            c.expect(",")?;
            let y = self.ix(&mut c)?;
            c.expect(",")?;
            self.k.grid = Some([x, y, self.ix(&mut c)?]);
            c.expect(")")?;
        }
        if c.eat("threads") {
            self.k.threads = c.int()?;
        }
        if c.eat("cluster") {
            self.k.cluster = c.int()?;
        }
        c.expect("scratch")?;
        self.k.scratch = c.int()?;
        if c.eat("shared") {
            self.k.shared = c.int()?;
        }
        c.expect("{")?;
        let space = |line: &Line| line.tokens.first().and_then(|word| of_word(&SPACES, word));
        while let Some(line) = self.lines.get(self.at) {
            let space = match (space(line), line.tokens.as_slice()) {
                (Some(space), _) => space,
                (None, ["tensor", name, ":", ..]) if !matches!(*name, ":" | "=") => {
                    self.tensor()?;
                    continue;
                }
                (None, ["global", "@", ..]) => {
                    self.global()?;
                    continue;
                }
                _ => break,
            };
            let mut c = self.line()?;
            c.next();
            let name = c.next();
            c.expect(":")?;
            let (space, elem) = match space == Space::Shared && c.eat(MBARRIER) {
                true => (Space::Mbarrier, Elem::Num(DType::I64)),
                false => (space, self.ty(&mut c)?.elem),
            };
            c.expect("[")?;
            let len = c.int()?;
            c.expect("]")?;
            c.expect("at")?;
            let slot = Slot { name: ident(name)?, space, elem, len, offset: c.int()? };
            let slot = self.k.slots.push(slot);
            self.name(name, Name::Slot(slot))?;
        }
        let (body, _) = self.block(0)?;
        self.k.body = body;
        match self.lines.get(self.at) {
            Some(_) => Err("there is text after the kernel".to_string()),
            None => Ok(()),
        }
    }

    fn tensor(&mut self) -> Res<()> {
        let mut c = self.line()?;
        c.next();
        let name = c.next();
        c.expect(":")?;
        let elem = self.ty(&mut c)?.dtype();
        let dims = self.list(&mut c, ["[", "]"], |p, c| p.ix(c))?;
        c.expect("of")?;
        let base = self.val(c.next())?;
        c.expect("strides")?;
        let strides = self.list(&mut c, ["(", ")"], |p, c| p.ix(c))?;
        c.expect("box")?;
        let extents = self.list(&mut c, ["[", "]"], |_, c| c.int())?;
        let swizzle = if c.eat("swizzle") { c.int()? } else { 0 };
        c.end()?;
        let tensor = Tensor { name: ident(name)?, base, elem, dims, strides, extents, swizzle };
        let tensor = self.k.tensors.push(tensor);
        self.name(name, Name::Tensor(tensor))
    }

    fn global(&mut self) -> Res<()> {
        let mut c = self.line()?;
        c.next();
        c.expect("@")?;
        let name = ident(c.next())?;
        if self.k.globals.iter().any(|g| g.name == name) {
            return Err(format!("`@{name}` is defined twice"));
        }
        c.expect(":")?;
        let dtype = self.ty(&mut c)?.dtype();
        c.expect("[")?;
        let len: usize = c.int()?;
        c.expect("]")?;
        c.expect("align")?;
        let align = c.int()?;
        let constant = c.eat("constant");
        c.expect("=")?;
        let bits = self.list(&mut c, ["[", "]"], |_, c| c.constant(dtype))?;
        if bits.len() != len {
            return Err(format!("the number of values given is {}", bits.len()));
        }
        c.end()?;
        let array = loops::ir::Global { name: name.to_string(), dtype, align, constant, bits };
        self.k.globals.push(Global { name, array });
        Ok(())
    }

    /// Things between brackets, with commas between them.
    fn list<T>(
        &self,
        c: &mut Cursor<'a>,
        [open, close]: [&str; 2],
        one: impl Fn(&Self, &mut Cursor<'a>) -> Res<T>,
    ) -> Res<Vec<T>> {
        c.expect(open)?;
        let mut all = vec![];
        while c.peek() != close {
            all.push(one(self, c)?);
            if !c.eat(",") {
                break;
            }
        }
        c.expect(close)?;
        Ok(all)
    }

    fn name(&mut self, name: &'a str, what: Name) -> Res<()> {
        match self.names.insert(name, what) {
            Some(_) => Err(format!("`{name}` is defined twice")),
            None => Ok(()),
        }
    }

    /// `NAME: ty`, a new value.
    fn define(&mut self, c: &mut Cursor<'a>) -> Res<ValId> {
        let name = c.next();
        c.expect(":")?;
        let ty = self.ty(c)?;
        let val = self.k.vals.push(Val { name: ident(name)?, ty });
        self.name(name, Name::Val(val))?;
        Ok(val)
    }

    fn ty(&self, c: &mut Cursor<'a>) -> Res<Ty> {
        let word = c.next();
        let split = |word: &'a str| -> (&'a str, u32) {
            match word.rsplit_once('x').and_then(|(base, n)| Some((base, n.parse().ok()?))) {
                Some((base, lanes)) if DType::from_name(base).is_some() || base.is_empty() => (base, lanes),
                _ => (word, 1),
            }
        };
        if word == "ptr" {
            c.expect("<")?;
            let of = c.next();
            c.expect(">")?;
            let d = DType::from_name(of).ok_or(format!("unknown element type `{of}`"))?;
            let lanes = if c.peek().starts_with('x') { split(c.next()).1 } else { 1 };
            return Ok(Ty { elem: Elem::Ptr(d), lanes });
        }
        let (base, lanes) = split(word);
        let d = DType::from_name(base).ok_or(format!("unknown type `{word}`"))?;
        Ok(Ty::num(d, lanes))
    }

    fn val(&self, name: &str) -> Res<ValId> {
        match self.names.get(name) {
            Some(Name::Val(v)) => Ok(*v),
            _ => Err(format!("expected a value, found `{name}`")),
        }
    }

    fn opnd(&self, c: &mut Cursor<'a>) -> Res<Opnd> {
        if let Some(Name::Val(v)) = self.names.get(c.peek()) {
            c.next();
            return Ok(Opnd::Val(*v));
        }
        let minus = if c.eat("-") { "-" } else { "" };
        let text = format!("{minus}{}", c.next());
        if c.peek() != ":" && text.starts_with(|f: char| f.is_ascii_alphabetic()) {
            return Err(format!("`{text}` is not defined before this"));
        }
        c.expect(":")?;
        let d = c.next();
        let dtype = DType::from_name(d).ok_or(format!("unknown element type `{d}`"))?;
        let bits = parse_const(dtype, &text).ok_or(format!("expected a constant of type {dtype}, found `{text}`"))?;
        Ok(Opnd::Const { dtype, bits })
    }

    fn ix(&self, c: &mut Cursor<'a>) -> Res<Ix> {
        read_ix(&mut Indices { parser: self, c })
    }

    fn mask(&self, c: &mut Cursor<'a>) -> Res<Mask> {
        read_mask(&mut Indices { parser: self, c })
    }

    fn wgmma(&self, c: &mut Cursor<'a>) -> Res<Stmt> {
        let slot = |c: &mut Cursor<'a>| match c.next() {
            name if matches!(self.names.get(name), Some(Name::Slot(_))) => match self.names[name] {
                Name::Slot(slot) => Ok(slot),
                _ => Err(format!("expected a slot, found `{name}`")),
            },
            name => Err(format!("expected a slot, found `{name}`")),
        };
        if c.eat("commit") {
            return Ok(Stmt::WgmmaCommit);
        }
        if c.eat("wait") {
            return Ok(Stmt::WgmmaWait { left: c.int()?, acc: slot(c)? });
        }
        let word = c.next();
        let of = of_word(&Operand::WORDS, word)
            .ok_or_else(|| format!("expected f16, bf16, commit or wait behind `wgmma`, found `{word}`"))?;
        let acc = slot(c)?;
        c.expect("add")?;
        let a = self.panel(c)?;
        c.expect(",")?;
        Ok(Stmt::Wgmma { acc, a, b: self.panel(c)?, of })
    }

    /// A copy of a box, to shared memory or from there.
    fn copy_tensor(&self, c: &mut Cursor<'a>) -> Result<Stmt, String> {
        let tensor = |name: &str| match self.names.get(name) {
            Some(Name::Tensor(tensor)) => Ok(*tensor),
            _ => Err(format!("expected a tensor, found `{name}`")),
        };
        match self.names.get(c.peek()) {
            Some(Name::Slot(_)) => {
                let to = self.place(c)?;
                c.expect("=")?;
                let tensor = tensor(c.next())?;
                let from = self.list(c, ["[", "]"], |p, c| p.ix(c))?;
                c.expect("on")?;
                Ok(Stmt::CopyTensor { to, tensor, from, on: self.place(c)?, all: c.eat("all") })
            }
            Some(Name::Tensor(tensor)) => {
                c.next();
                let to = self.list(c, ["[", "]"], |p, c| p.ix(c))?;
                c.expect("=")?;
                Ok(Stmt::StoreTensor { tensor: *tensor, to, from: self.place(c)? })
            }
            _ => Err(format!("expected a shared slot or a tensor behind `copy tensor`, found `{}`", c.peek())),
        }
    }

    fn panel(&self, c: &mut Cursor<'a>) -> Res<Panel> {
        let (place, transposed) = (self.place(c)?, c.eat("trans"));
        c.expect("swizzle")?;
        let swizzle = c.int()?;
        c.expect("strides")?;
        let [lead, stride] = <[u32; 2]>::try_from(self.list(c, ["(", ")"], |_, c| c.int())?)
            .map_err(|_| "a panel has two strides".to_string())?;
        Ok(Panel { place, transposed, swizzle, lead, stride })
    }

    fn place(&self, c: &mut Cursor<'a>) -> Res<Address> {
        let name = c.next();
        let what = self.names.get(name).copied();
        let as_elem = if c.eat("as") {
            let d = c.next();
            Some(DType::from_name(d).ok_or(format!("unknown element type `{d}`"))?)
        } else {
            None
        };
        c.expect("[")?;
        let index = self.ix(c)?;
        c.expect("]")?;
        match (what, as_elem) {
            (Some(Name::Slot(buf)), None) => Ok(Address::Slot { buf, index }),
            (Some(Name::Val(base)), Some(elem)) => Ok(Address::Mem { base, index, elem }),
            (Some(Name::Val(base)), None) => match self.k.vals[base].ty.elem {
                Elem::Ptr(elem) => Ok(Address::Mem { base, index, elem }),
                Elem::Num(_) => Err(format!("expected an address, found `{name}`")),
            },
            _ => Err(format!("expected a slot or an address, found `{name}`")),
        }
    }

    fn whether(&self, c: &mut Cursor<'a>) -> Res<Mask> {
        if c.eat("where") { self.mask(c) } else { Ok(Mask::default()) }
    }

    fn tail(&self, c: &mut Cursor<'a>) -> Res<(Mask, Option<Opnd>, Order)> {
        let mask = self.whether(c)?;
        let other = if c.eat("else") { Some(self.opnd(c)?) } else { None };
        let order = of_word(&ORDERS, c.peek());
        if order.is_some() {
            c.next();
        }
        Ok((mask, other, order.unwrap_or(Order::Weak)))
    }

    /// Statements up to the line that closes the block; says whether that line opens an `else`.
    fn block(&mut self, depth: u32) -> Res<(Vec<Stmt>, bool)> {
        if depth > 200 {
            return Err("blocks are nested too deeply".to_string());
        }
        let mut out = Vec::new();
        loop {
            let mut c = self.line()?;
            if c.eat("}") {
                let is_else = c.eat("else");
                if is_else {
                    c.expect("{")?;
                }
                return Ok((out, is_else));
            }
            self.statements.push(self.lines[self.at - 1].span);
            let stmt = self.stmt(&mut c, depth)?;
            c.end()?;
            out.push(stmt);
        }
    }

    fn inner(&mut self, c: &mut Cursor<'a>, depth: u32) -> Res<Vec<Stmt>> {
        c.expect("{")?;
        match self.block(depth + 1)? {
            (body, false) => Ok(body),
            _ => Err("an `else` without an `if`".to_string()),
        }
    }

    fn stmt(&mut self, c: &mut Cursor<'a>, depth: u32) -> Res<Stmt> {
        let second = c.tokens.get(c.at + 1).copied().unwrap_or("");
        if second == ":" {
            let dst = self.define(c)?;
            c.expect("=")?;
            return self.definition(c, dst);
        }
        if second == "=" {
            let var = self.val(c.next())?;
            c.next();
            return Ok(Stmt::Set { var, value: self.opnd(c)? });
        }
        Ok(match c.next() {
            "var" => {
                let var = self.define(c)?;
                c.expect("=")?;
                Stmt::Var { var, init: self.opnd(c)? }
            }
            "prefetch" => Stmt::Prefetch { place: self.place(c)? },
            "store" => {
                let place = self.place(c)?;
                c.expect("=")?;
                let value = self.opnd(c)?;
                let (mask, _, order) = self.tail(c)?;
                Stmt::Store { place, value, mask, order }
            }
            "some" => {
                let from = self.ix(c)?;
                c.expect("..")?;
                let to = self.ix(c)?;
                c.expect("store")?;
                let place = self.place(c)?;
                c.expect("=")?;
                Stmt::StoreSome { place, value: self.val(c.next())?, from, to }
            }
            "lane" => {
                let vector = self.val(c.next())?;
                c.expect("[")?;
                let lane = self.ix(c)?;
                c.expect("]")?;
                c.expect("=")?;
                Stmt::SetLane { vector, lane, value: self.opnd(c)? }
            }
            "for" => {
                let name = c.next();
                c.expect("in")?;
                let lo = self.ix(c)?;
                c.expect("..")?;
                let hi = self.ix(c)?;
                c.expect("step")?;
                let step = self.ix(c)?;
                let unroll = if c.eat("unroll") { c.int()? } else { 0 };
                let axis = self.k.axes.push(Axis { name: ident(name)?, from: None });
                self.name(name, Name::Axis(axis))?;
                Stmt::For { axis, lo, hi, step, unroll, body: self.inner(c, depth)? }
            }
            "loop" => Stmt::Loop { body: self.inner(c, depth)? },
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "return" => Stmt::Return,
            "if" => {
                let mask = self.mask(c)?;
                c.expect("{")?;
                let (then, has_else) = self.block(depth + 1)?;
                let els = match has_else {
                    true => match self.block(depth + 1)? {
                        (els, false) => els,
                        _ => return Err("an `if` has two `else`".to_string()),
                    },
                    false => vec![],
                };
                Stmt::If { mask, then, els }
            }
            "barrier" if c.eat("cluster") => Stmt::ClusterBarrier,
            "barrier" => Stmt::Barrier,
            "syncwarp" => Stmt::SyncWarp,
            "copy" if c.eat("tensor") => self.copy_tensor(c)?,
            "copy" if c.eat("commit") => Stmt::StoreCommit,
            "copy" if c.eat("wait") => Stmt::StoreWait { left: c.int()? },
            "registers" => {
                let more = match c.next() {
                    "more" => true,
                    "fewer" => false,
                    other => return Err(format!("expected more or fewer behind `registers`, found `{other}`")),
                };
                Stmt::Registers { count: c.int()?, more }
            }
            "init" => {
                let on = self.place(c)?;
                c.expect("count")?;
                Stmt::InitBarrier { on, count: c.int()? }
            }
            "arrive" => {
                let on = self.place(c)?;
                let bytes = if c.eat("expect") { Some(c.int()?) } else { None };
                Stmt::Arrive { on, bytes, of: if c.eat("of") { Some(c.int()?) } else { None } }
            }
            "fence" => {
                let word = c.next();
                let fence = of_word(&FENCES, word);
                Stmt::Fence(fence.ok_or_else(|| {
                    format!("expected `init`, `async`, `global` or `registers` behind `fence`, found `{word}`")
                })?)
            }
            "copy" => {
                c.expect("async")?;
                let to = self.place(c)?;
                c.expect("=")?;
                let from = self.place(c)?;
                c.expect("bytes")?;
                let bytes = c.int()?;
                Stmt::CopyAsync { to, from, bytes, mask: self.whether(c)? }
            }
            "tile" => {
                let tile = c.int()?;
                match c.next() {
                    "load" => {
                        let place = self.place(c)?;
                        c.expect("by")?;
                        Stmt::TileLoad { tile, place, by: self.ix(c)? }
                    }
                    "store" => {
                        let place = self.place(c)?;
                        c.expect("by")?;
                        Stmt::TileStore { tile, place, by: self.ix(c)? }
                    }
                    "add" => {
                        let word = c.next();
                        let of = of_word(&TileTerms::WORDS, word);
                        let of = of.ok_or_else(|| format!("expected `bf16` or `u8s8` behind `add`, found `{word}`"))?;
                        let a = c.int()?;
                        c.expect(",")?;
                        Stmt::TileDot { of, sums: tile, a, b: c.int()? }
                    }
                    other => return Err(format!("expected `load`, `store` or `add` behind a tile, found `{other}`")),
                }
            }
            "mma" => {
                let word = c.next();
                let left = of_word(&Operand::WORDS, word).ok_or_else(|| {
                    format!("expected f16, bf16, tf32, e4m3, e5m2, s8 or u8 behind `mma`, found `{word}`")
                })?;
                let right = of_word(&Operand::WORDS, c.peek());
                if right.is_some() {
                    c.next();
                }
                let low = self.place(c)?;
                c.expect(",")?;
                let high = self.place(c)?;
                let apart = if c.eat("by") { c.int()? } else { 1 };
                c.expect("add")?;
                let a = self.val(c.next())?;
                c.expect(",")?;
                Stmt::Mma { acc: [low, high], apart, a, b: self.val(c.next())?, of: [left, right.unwrap_or(left)] }
            }
            "wgmma" => self.wgmma(c)?,
            "commit" => Stmt::Commit,
            "wait" if c.tokens.get(c.at + 1) == Some(&"[") => {
                let on = self.place(c)?;
                c.expect("parity")?;
                Stmt::WaitPhase { on, parity: self.ix(c)? }
            }
            "wait" => {
                c.expect("groups")?;
                Stmt::WaitGroups { left: c.int()? }
            }
            "poll" => Stmt::Poll,
            "yield" => Stmt::Yield { site: c.site()? },
            "print" => {
                let format = Quoted::new(&c.string()?);
                let mut args = Vec::new();
                while c.eat(",") {
                    args.push(match self.names.get(c.peek()) {
                        Some(Name::Slot(slot)) => {
                            c.next();
                            PrintArg::Tile { slot: *slot, shape: self.list(c, ["[", "]"], |_, c| c.int())? }
                        }
                        _ => PrintArg::Scalar(self.opnd(c)?),
                    });
                }
                Stmt::Print { format, args, site: c.site()? }
            }
            "assert" => {
                let cond = self.opnd(c)?;
                c.expect(",")?;
                let message = Quoted::new(&c.string()?);
                let element = if c.eat("element") { Some(self.ix(c)?) } else { None };
                Stmt::Assert { cond, message, element, site: c.site()? }
            }
            "check" => {
                let write = match c.next() {
                    "write" => true,
                    "read" => false,
                    other => return Err(format!("expected `read` or `write`, found `{other}`")),
                };
                let place = self.place(c)?;
                c.expect("count")?;
                let count = c.int()?;
                let param = if c.eat("param") { Some(c.int()?) } else { None };
                let element = if c.eat("element") { Some(self.ix(c)?) } else { None };
                let site = c.site()?;
                let mask = self.whether(c)?;
                Stmt::Check { place, count, mask, write, param, element, site }
            }
            other => return Err(format!("expected a statement, found `{other}`")),
        })
    }

    fn definition(&mut self, c: &mut Cursor<'a>, dst: ValId) -> Res<Stmt> {
        let word = c.next();
        Ok(match word {
            "splat" => Stmt::Splat { dst, value: self.opnd(c)? },
            "ramp" => {
                let base = self.ix(c)?;
                c.expect("step")?;
                Stmt::Ramp { dst, base, step: self.ix(c)? }
            }
            "index" => Stmt::Index { dst, ix: self.ix(c)? },
            "test" => Stmt::Test { dst, mask: self.mask(c)? },
            "load" => {
                let place = self.place(c)?;
                if c.eat("of") {
                    return Ok(Stmt::LoadOf { dst, place, of: c.int()? });
                }
                let (mask, other, order) = self.tail(c)?;
                Stmt::Load { dst, place, mask, other, order }
            }
            "lane" => {
                let vector = self.val(c.next())?;
                c.expect("[")?;
                let lane = self.ix(c)?;
                c.expect("]")?;
                Stmt::Lane { dst, vector, lane }
            }
            "reduce" => {
                let op = self.op(c.next())?;
                Stmt::Reduce { dst, op, vector: self.val(c.next())? }
            }
            "all" => Stmt::All { dst, vector: self.val(c.next())? },
            "merge" => {
                let high = match c.next() {
                    "low" => false,
                    "high" => true,
                    other => return Err(format!("expected `low` or `high`, found `{other}`")),
                };
                let width = c.int()?;
                let a = self.val(c.next())?;
                c.expect(",")?;
                Stmt::Merge { dst, a, b: self.val(c.next())?, width, high }
            }
            "some" => {
                let from = self.ix(c)?;
                c.expect("..")?;
                let to = self.ix(c)?;
                c.expect("load")?;
                let place = self.place(c)?;
                c.expect("else")?;
                Stmt::LoadSome { dst, place, from, to, other: self.opnd(c)? }
            }
            "every" => {
                let step = c.int()?;
                let mut parts = vec![self.val(c.next())?];
                for _ in 1..u32::min(step, MOST_APART) {
                    c.expect(",")?;
                    parts.push(self.val(c.next())?);
                }
                if parts.len() as u32 != step {
                    return Err(format!("elements may lie at most {MOST_APART} apart, found {step}"));
                }
                Stmt::Every { dst, parts }
            }
            "interleave" => {
                let part = c.int()?;
                c.expect("of")?;
                let mut parts = vec![self.val(c.next())?];
                while c.eat(",") {
                    parts.push(self.val(c.next())?);
                }
                Stmt::Interleave { dst, parts, part }
            }
            "rmw" => {
                let word = c.next();
                let op = of_word(&RMWS, word).ok_or(format!("unknown atomic operation `{word}`"))?;
                let place = self.place(c)?;
                c.expect(",")?;
                let value = self.opnd(c)?;
                let (mask, _, order) = self.tail(c)?;
                Stmt::Rmw { dst, op, place, value, mask, order }
            }
            "cas" => {
                let place = self.place(c)?;
                c.expect(",")?;
                let cmp = self.opnd(c)?;
                c.expect(",")?;
                let value = self.opnd(c)?;
                let (mask, _, order) = self.tail(c)?;
                Stmt::Cas { dst, place, cmp, value, mask, order }
            }
            "shuffle" => {
                let word = c.next();
                let kind = of_word(&SHUFFLES, word)
                    .ok_or_else(|| format!("expected `xor`, `down` or `idx` behind `shuffle`, found `{word}`"))?;
                let value = self.val(c.next())?;
                c.expect(",")?;
                Stmt::Shuffle { dst, kind, value, by: self.opnd(c)? }
            }
            "ldmatrix" => {
                let transposed = match (c.eat("trans"), c.peek()) {
                    (false, _) => Transposed::No,
                    (true, "left") => Transposed::Left,
                    (true, "right") => Transposed::Right,
                    (true, _) => Transposed::Yes,
                };
                if transposed.of_bytes() {
                    c.next();
                }
                Stmt::LoadMatrix { dst, place: self.place(c)?, transposed }
            }
            "global" => {
                c.expect("@")?;
                let name = c.next();
                let at = self.k.globals.iter().position(|g| g.name.as_str() == name);
                Stmt::GlobalAddr { dst, global: at.ok_or(format!("there is no global `@{name}`"))? as u32 }
            }
            "scratch" => Stmt::Scratch { dst, offset: self.ix(c)? },
            _ => {
                let op = self.op(word)?;
                let mut args = vec![self.opnd(c)?];
                while c.eat(",") {
                    args.push(self.opnd(c)?);
                }
                let at = args.get(op.typed_by()).ok_or("an operand is missing")?;
                let ty = match at {
                    Opnd::Const { dtype, .. } => Elem::Num(*dtype),
                    Opnd::Val(v) => self.k.vals[*v].ty.elem,
                };
                Stmt::Let { dst, op, ty, args }
            }
        })
    }

    fn op(&self, word: &str) -> Res<ScalarOp> {
        parse_op(word, Class::Any).ok_or(format!("unknown operation `{word}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn mutilated_text_never_panics() {
        let text = "kernel k(A: ptr f32, n: i32) scratch 64 {\n  slot s: f32[16] at 0\n  for i in 0..16 step 1 {\n    \
                    x: f32 = load s[i + 1 - min(bx, 2)] where i < zext(n) else 0.0\n  }\n}\n";
        let more = "kernel k(a: ptr<f32>, n: i32) threads 32 scratch 0 shared 600 {\n  shared s: f32[64] at 0\n  \
                    shared full: mbarrier[2] at 512\n  tensor t: f32[n, 32] of a strides (32) box [2, 32] swizzle 128\n  \
                    init full[0] count 1\n  fence init\n  arrive full[0] expect 8\n  copy tensor s[0] = t[n, -1] on full[1]\n  \
                    barrier cluster\n  arrive full[0] of 1\n  copy tensor s[0] = t[n, -1] on full[1] all\n  \
                    wait full[0] parity n%2\n  copy async s[tx] = a[tx] bytes 4 where tx < n\n  commit\n  wait groups 0\n}\n";
        assert!(parse(more).is_ok());
        for cut in (0..more.len()).filter(|&i| more.is_char_boundary(i)) {
            let _ = parse(&more[..cut]);
            let _ = parse(&format!("{}[{}", &more[..cut], &more[cut..]));
        }
        for cut in (0..text.len()).filter(|&i| text.is_char_boundary(i)) {
            let _ = parse(&text[..cut]);
            let _ = parse(&format!("{}é{}", &text[..cut], &text[cut..]));
        }
        for deep in ["(", "1 + ", "min(", "-"] {
            let long = text.replace("i + 1", &deep.repeat(100_000));
            assert!(parse(&long).is_err(), "{deep}");
        }
    }
}
