//! Kernel IR read back from its text, line by line: the inverse of `print::print`.

use super::ir::*;
use super::print::{MBARRIER, SPACES};
use super::statements::{ROWS, Row};
use crate::base::lines::unquote;
use crate::base::words::did_you_mean;
use crate::base::{Code, Diagnostic, Label, Span};
use crate::index::text::{Tokens, launch_leaf, read_ix, read_mask};
use crate::loops;
use crate::loops::print::of_word;
use crate::num::DType;
use crate::num::literal::parse_const;
use rustc_hash::FxHashMap;

/// The kernel that a text holds; the diagnostic says what the line that fails should have been.
pub fn parse(text: &str) -> Result<Kernel, Diagnostic> {
    parse_located(text).map(|(kernel, _)| kernel)
}

/// The kernel, and where each of its statements stands, in the order of the text; those inside others count too.
pub fn parse_located(text: &str) -> Result<(Kernel, Vec<Span>), Diagnostic> {
    let names = FxHashMap::default();
    let mut p = Parser {
        k: Kernel::default(),
        names,
        lines: lines(text),
        at: 0,
        depth: 0,
        defined: None,
        has_else: false,
        statements: vec![],
    };
    match p.kernel() {
        Ok(()) => Ok((p.k, p.statements)),
        Err(message) => {
            let line = p.lines.get(p.at.saturating_sub(1)).or(p.lines.last());
            let span = line.map_or(Span::default(), |l| l.span);
            Err(Diagnostic::error(Code::MalformedIr, message).at(span))
        }
    }
}

pub(super) type Res<T> = Result<T, String>;

pub(super) fn ident(name: &str) -> Res<Ident> {
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

/// Blocks inside each other.
const MOST_DEPTH: u32 = 200;

#[derive(Clone, Copy)]
enum Name {
    Val(ValId),
    Axis(AxisId),
    Slot(BufId),
    Tensor(TensorId),
}

pub(super) struct Parser<'a> {
    k: Kernel,
    names: FxHashMap<&'a str, Name>,
    lines: Vec<Line<'a>>,
    at: usize,
    /// Blocks that are open.
    depth: u32,
    /// The value that the current line defines, and the cursor behind it: several rows may be tried at one line.
    defined: Option<(ValId, usize)>,
    /// The block read last is followed by an `else`.
    has_else: bool,
    /// Where the statements read so far stand.
    statements: Vec<Span>,
}

/// The tokens of a line that are left.
pub(super) struct Cursor<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }
    pub(super) fn next(&mut self) -> &'a str {
        let t = self.peek();
        self.at += 1;
        t
    }
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let is = self.peek() == token;
        self.at += is as usize;
        is
    }
    /// Things with commas between them, one at least.
    pub(super) fn separated<T>(&mut self, mut one: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.eat(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }
    /// Reads one of the words of a table and returns its meaning.
    pub(super) fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Res<T> {
        of_word(table, self.peek()).inspect(|_| self.at += 1).ok_or_else(|| {
            let words: Vec<String> = table.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (last, others) = words
                .split_last()
                .map_or((String::new(), String::new()), |(last, others)| (last.clone(), others.join(", ")));
            format!("expected {others} or {last}, found {}", self.found())
        })
    }
    /// The next token, for a message.
    fn found(&self) -> String {
        match self.peek() {
            "" => "the end of the line".to_string(),
            token => format!("`{token}`"),
        }
    }
    pub(super) fn expect(&mut self, token: &str) -> Res<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("expected `{token}`, found {}", self.found())) }
    }
    fn end(&self) -> Res<()> {
        match self.at < self.tokens.len() {
            true => Err(format!("expected the end of the line, found `{}`", self.peek())),
            false => Ok(()),
        }
    }
    pub(super) fn int<T: std::str::FromStr>(&mut self) -> Res<T> {
        let t = self.next();
        t.parse().map_err(|_| format!("expected a number, found `{t}`"))
    }
    /// Reads a number in hexadecimal digits behind `0x`.
    pub(super) fn hex(&mut self) -> Res<u64> {
        let found = self.found();
        let digits = self.next().strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.ok_or_else(|| format!("expected a number that begins with `0x`, found {found}"))
    }
    /// Reads a string in quotes and returns its content.
    pub(super) fn string(&mut self) -> Res<String> {
        let found = self.found();
        unquote(self.next()).ok_or_else(|| format!("expected a string in quotes, found {found}"))
    }
    fn constant(&mut self, dtype: DType) -> Res<u64> {
        let minus = if self.eat("-") { "-" } else { "" };
        let text = format!("{minus}{}", self.next());
        parse_const(dtype, &text).ok_or(format!("expected a constant of type {dtype}, found `{text}`"))
    }
    pub(super) fn site(&mut self) -> Res<SiteId> {
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
            let val = self.declare(&mut c)?;
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
        if c.eat("warp") {
            self.k.warp = c.int()?;
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
                    self.tensor_line()?;
                    continue;
                }
                (None, ["global", "@", ..]) => {
                    self.global_line()?;
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
        self.k.body = self.block()?;
        self.no_else("an `else` without an `if`")?;
        match self.lines.get(self.at) {
            Some(_) => Err("there is text after the kernel".to_string()),
            None => Ok(()),
        }
    }

    fn tensor_line(&mut self) -> Res<()> {
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

    fn global_line(&mut self) -> Res<()> {
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
    pub(super) fn list<T>(
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

    /// `NAME: ty`, a new value; that of the current line, if another row that was tried has read it already.
    pub(super) fn define(&mut self, c: &mut Cursor<'a>) -> Res<ValId> {
        if let Some((val, behind)) = self.defined {
            c.at = behind;
            return Ok(val);
        }
        let val = self.declare(c)?;
        self.defined = Some((val, c.at));
        Ok(val)
    }

    fn declare(&mut self, c: &mut Cursor<'a>) -> Res<ValId> {
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

    pub(super) fn val(&self, name: &str) -> Res<ValId> {
        match self.names.get(name) {
            Some(Name::Val(v)) => Ok(*v),
            _ => Err(format!("expected a value, found `{name}`")),
        }
    }

    pub(super) fn opnd(&self, c: &mut Cursor<'a>) -> Res<Opnd> {
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

    pub(super) fn ix(&self, c: &mut Cursor<'a>) -> Res<Ix> {
        read_ix(&mut Indices { parser: self, c })
    }

    pub(super) fn mask(&self, c: &mut Cursor<'a>) -> Res<Mask> {
        read_mask(&mut Indices { parser: self, c })
    }

    pub(super) fn slot(&self, name: &str) -> Res<BufId> {
        match self.names.get(name) {
            Some(Name::Slot(slot)) => Ok(*slot),
            _ => Err(format!("expected a slot, found `{name}`")),
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Res<TensorId> {
        match self.names.get(name) {
            Some(Name::Tensor(tensor)) => Ok(*tensor),
            _ => Err(format!("expected a tensor, found `{name}`")),
        }
    }

    pub(super) fn global(&self, name: &str) -> Res<u32> {
        let at = self.k.globals.iter().position(|g| g.name.as_str() == name);
        at.map(|at| at as u32).ok_or(format!("there is no global `@{name}`"))
    }

    /// A value that is printed, or a tile that lies in a slot.
    pub(super) fn shown(&self, c: &mut Cursor<'a>) -> Res<PrintArg> {
        match self.names.get(c.peek()) {
            Some(Name::Slot(slot)) => {
                c.next();
                Ok(PrintArg::Tile { slot: *slot, shape: self.list(c, ["[", "]"], |_, c| c.int())? })
            }
            _ => self.opnd(c).map(PrintArg::Scalar),
        }
    }

    pub(super) fn left(&self, c: &mut Cursor<'a>) -> Res<Left> {
        let place = self.place(c)?;
        match c.peek() {
            "trans" | "swizzle" => self.lies(c, place).map(Left::Panel),
            _ => Ok(Left::Words(place)),
        }
    }

    pub(super) fn panel(&self, c: &mut Cursor<'a>) -> Res<Panel> {
        let place = self.place(c)?;
        self.lies(c, place)
    }

    /// How the matrix from a place on lies.
    fn lies(&self, c: &mut Cursor<'a>, place: Address) -> Res<Panel> {
        let transposed = c.eat("trans");
        c.expect("swizzle")?;
        let swizzle = c.int()?;
        c.expect("strides")?;
        let [lead, stride] = <[u32; 2]>::try_from(self.list(c, ["(", ")"], |_, c| c.int())?)
            .map_err(|_| "a panel has two strides".to_string())?;
        Ok(Panel { place, transposed, swizzle, lead, stride })
    }

    pub(super) fn place(&self, c: &mut Cursor<'a>) -> Res<Address> {
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

    /// Statements up to the line that closes the block; notes whether that line opens an `else`.
    fn block(&mut self) -> Res<Vec<Stmt>> {
        if self.depth > MOST_DEPTH {
            return Err("blocks are nested too deeply".to_string());
        }
        let mut out = Vec::new();
        loop {
            let mut c = self.line()?;
            if c.eat("}") {
                self.has_else = c.eat("else");
                if self.has_else {
                    c.expect("{")?;
                }
                c.end()?;
                return Ok(out);
            }
            self.statements.push(self.lines[self.at - 1].span);
            out.push(self.stmt(&mut c)?);
        }
    }

    fn inner(&mut self) -> Res<Vec<Stmt>> {
        self.depth += 1;
        let body = self.block();
        self.depth -= 1;
        body
    }

    /// The statements of an `if`; [`Parser::otherwise`] follows.
    pub(super) fn then(&mut self, c: &mut Cursor<'a>) -> Res<Vec<Stmt>> {
        c.expect("{")?;
        c.end()?;
        self.inner()
    }

    /// Reads the block after `} else {`, if the last block ended with it.
    pub(super) fn otherwise(&mut self) -> Res<Vec<Stmt>> {
        match std::mem::take(&mut self.has_else) {
            true => self.inner().and_then(|els| self.no_else("an `if` has two `else`").map(|()| els)),
            false => Ok(vec![]),
        }
    }

    pub(super) fn braces(&mut self, c: &mut Cursor<'a>) -> Res<Vec<Stmt>> {
        let body = self.then(c)?;
        self.no_else("an `else` without an `if`").map(|()| body)
    }

    fn no_else(&self, message: &str) -> Res<()> {
        if self.has_else { Err(message.to_string()) } else { Ok(()) }
    }

    /// A new axis.
    pub(super) fn open(&mut self, name: &'a str) -> Res<AxisId> {
        let axis = self.k.axes.push(Axis { name: ident(name)?, from: None });
        self.name(name, Name::Axis(axis)).map(|()| axis)
    }

    /// The statement of a line: that of the row that reads all of it. Where none does, the one that reads furthest says why.
    fn stmt(&mut self, c: &mut Cursor<'a>) -> Res<Stmt> {
        self.defined = None;
        let rows = self.rows(c)?;
        let (start, mut furthest) = (c.at, (0, String::new()));
        for row in rows {
            c.at = start;
            match (row.parse)(self, c).and_then(|stmt| c.end().map(|()| stmt)) {
                Ok(stmt) => return self.typed(stmt),
                Err(message) if c.at > furthest.0 || furthest.1.is_empty() => furthest = (c.at, message),
                Err(_) => {}
            }
        }
        Err(furthest.1)
    }

    /// The rows whose words are those of the line.
    fn rows(&mut self, c: &mut Cursor<'a>) -> Res<Vec<&'static Row>> {
        let first = c.peek();
        let second = c.tokens.get(c.at + 1).copied().unwrap_or("");
        let rows: Vec<&Row> = match second {
            ":" => {
                let word = self.defined_by(c)?;
                let defines = || ROWS.iter().filter(|row| row.begins("New"));
                let named: Vec<&Row> = defines().filter(|row| row.next.get(1) == Some(&word)).collect();
                match named.is_empty() {
                    true => defines().filter(|row| row.next.len() == 1).collect(),
                    false => named,
                }
            }
            "=" => ROWS.iter().filter(|row| row.begins("Written")).collect(),
            _ => {
                let says = |row: &&Row| row.head.iter().zip([first, second]).all(|(head, word)| *head == word);
                ROWS.iter().filter(|row| !row.head.is_empty() && says(row)).collect()
            }
        };
        if rows.is_empty() {
            // Where several statements begin with this word, the next one is wrong.
            let begin = ROWS.iter().filter(|row| row.head.len() > 1 && row.head[0] == first);
            let pairs: Vec<String> = begin.map(|row| row.head[..2].join(" ")).collect();
            let known = ROWS.iter().filter_map(|row| row.head.first().copied());
            let (found, meant) = match pairs.is_empty() {
                true => (first.to_string(), did_you_mean(first, known)),
                false => {
                    let found = format!("{first} {second}");
                    let meant = did_you_mean(&found, pairs.iter().map(String::as_str));
                    (found, meant)
                }
            };
            let meant = meant.map_or(String::new(), |meant| format!("; {meant}"));
            return Err(format!("expected a statement, found `{found}`{meant}"));
        }
        Ok(rows)
    }

    /// The word behind `NAME: ty =`.
    fn defined_by(&mut self, c: &mut Cursor<'a>) -> Res<&'a str> {
        let start = c.at;
        self.define(c)?;
        c.expect("=")?;
        let word = c.peek();
        c.at = start;
        Ok(word)
    }

    /// An operation is applied at the type of one of its operands.
    fn typed(&self, mut stmt: Stmt) -> Res<Stmt> {
        if let Stmt::Let { op, ty, args, .. } = &mut stmt {
            *ty = match args.get(op.typed_by()).ok_or("an operand is missing")? {
                Opnd::Const { dtype, .. } => Elem::Num(*dtype),
                Opnd::Val(v) => self.k.vals[*v].ty.elem,
            };
        }
        Ok(stmt)
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
                    shared full: mbarrier[2] at 512\n  kept own: f32[4] at 0\n  zeroed count: i64[1] at 16\n  tensor t: f32[n, 32] of a strides (32) box [2, 32] swizzle 128\n  \
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
