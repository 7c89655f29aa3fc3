//! Writes tile programs: a [`Module`] in, text out that reads back as the same module.
//!
//! [`print()`] is for people: values keep their names, defaults are left out, long statements are broken.
//! [`print_nvidia`] equals the text of NVIDIA's disassembler: its value names, its number format, its blanks.
//! [`format()`] reads a text and prints it with its comments where they were.
//!
//! ```text
//! cuda_tile.module @m {
//!   entry @k(%p: tile<ptr<f32>>) {
//!     %x, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
//!     return
//!   }
//! }
//! ```

mod attrs;
mod body;
mod comments;
mod locations;
mod names;
mod nvidia_names;
mod types;
mod wrap;

#[cfg(test)]
mod tests;

pub use types::type_text;

use super::ir::*;
use super::parse::parse;
use crate::base::label::is_hidden;
use crate::base::lexer::{escape, unescape};
use crate::base::provenance::SourceId;
use crate::base::{Diagnostic, Span};
use attrs::{elements_text, hints_text};
use body::Body;
use comments::Comments;
use locations::Locations;

/// The style in which a program is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    Girih,
    Nvidia,
}

/// The program in our own style.
pub fn print(m: &Module) -> String {
    let mut printer = Printer::new(Style::Girih, None);
    printer.locations = Locations::girih(m);
    printer.module(m)
}

/// The same, with the line on which each operation begins, from 1: in order of the text, each operation by its offset
/// in the text or the bytecode that the program was read from.
pub fn print_numbered(m: &Module) -> (String, Vec<(SourceId, u32)>) {
    let mut printer = Printer::new(Style::Girih, None);
    printer.locations = Locations::girih(m);
    printer.written(m)
}

/// The program in the form of NVIDIA's disassembler, without debug locations.
pub fn print_nvidia(m: &Module) -> String {
    Printer::new(Style::Nvidia, None).module(m)
}

/// The program in the form of NVIDIA's disassembler with `-g`: every statement has its debug location.
pub fn print_nvidia_debug(m: &Module) -> String {
    let mut printer = Printer::new(Style::Nvidia, None);
    printer.locations = Locations::nvidia(m);
    printer.module(m)
}

/// The same program in our own style with its comments kept, or the reasons why it cannot be read.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse(text);
    match parsed.module {
        Some(m) => {
            let mut printer = Printer::new(Style::Girih, Some(Comments::new(text)));
            printer.locations = Locations::girih(&m);
            Ok(printer.module(&m))
        }
        None => Err(parsed.diagnostics),
    }
}

/// The text before the producer on the first line of NVIDIA's text.
pub(super) const PRODUCER: &str = "// Producer: ";

/// The producer as it is, or as a string literal if it contains hidden characters or would be read as a literal.
fn producer_text(producer: &str) -> String {
    let plain = !producer.starts_with('"') && !producer.contains(is_hidden);
    if plain { producer.to_string() } else { escape(producer) }
}

/// The producer in the first line of a text.
pub(super) fn read_producer(text: &str) -> Option<String> {
    let producer = text.lines().next()?.strip_prefix(PRODUCER)?;
    match producer.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
        Some(raw) => Some(unescape(raw)),
        None => Some(producer.to_string()),
    }
}

/// A module of a file, and its beginning.
struct Part<'m> {
    name: Option<&'m String>,
    producer: Option<&'m String>,
    globals: usize,
    funcs: usize,
    at: Option<u32>,
}

/// The lines written so far.
struct Printer<'a> {
    pub style: Style,
    pub comments: Option<Comments<'a>>,
    pub locations: Locations,
    pub lines: Vec<String>,
    pub indent: usize,
    /// The beginnings of operations, and their lines.
    pub starts: Vec<(SourceId, u32)>,
}

impl<'a> Printer<'a> {
    fn new(style: Style, comments: Option<Comments<'a>>) -> Printer<'a> {
        Printer { style, comments, locations: Locations::default(), lines: vec![], indent: 0, starts: vec![] }
    }

    pub fn nvidia(&self) -> bool {
        self.style == Style::Nvidia
    }

    pub fn line(&mut self, text: &str) {
        self.lines.push(format!("{}{text}", "  ".repeat(self.indent)));
    }

    /// A statement, or the head of one with regions; in our own style it is broken into several lines if it is too
    /// long.
    pub fn statement(&mut self, text: &str) {
        if self.nvidia() {
            return self.line(text);
        }
        let indent = 2 * self.indent;
        for (i, line) in wrap::wrap(text, wrap::WIDTH.saturating_sub(indent)).into_iter().enumerate() {
            let deeper = if i == 0 { 0 } else { wrap::INDENT };
            self.lines.push(format!("{}{line}", " ".repeat(indent + deeper)));
        }
    }

    fn module(self, m: &Module) -> String {
        self.written(m).0
    }

    fn written(mut self, m: &Module) -> (String, Vec<(SourceId, u32)>) {
        if let Some(producer) = m.producer.as_ref().filter(|_| self.nvidia()) {
            self.line(&format!("{PRODUCER}{}", producer_text(producer)));
        }
        let first = Part { name: m.name.as_ref(), producer: m.producer.as_ref(), globals: 0, funcs: 0, at: None };
        // The disassembler's text has no modules.
        let later = m.later.iter().filter(|_| !self.nvidia()).map(|l| Part {
            name: Some(&l.name),
            producer: l.producer.as_ref(),
            globals: l.globals,
            funcs: l.funcs,
            at: Some(l.span.start),
        });
        let mut parts: Vec<Part> = std::iter::once(first).chain(later).collect();
        // The part before a file's first module belongs to no module; it is dropped if it is empty.
        if parts.len() > 1 && m.name.is_none() && m.later.first().is_some_and(|l| l.globals + l.funcs == 0) {
            parts.remove(0);
        }
        for (i, part) in parts.iter().enumerate() {
            let next = parts.get(i + 1);
            let globals = m.globals.get(part.globals..next.map_or(m.globals.len(), |n| n.globals)).unwrap_or(&[]);
            let funcs = m.funcs.get(part.funcs..next.map_or(m.funcs.len(), |n| n.funcs)).unwrap_or(&[]);
            if i > 0 && self.comments.is_none() && !self.nvidia() {
                self.lines.push(String::new());
            }
            self.part(part, globals, funcs, next.is_none());
        }
        self.lines.extend(self.locations.definitions());
        self.rest();
        let mut out = self.lines.join("\n");
        out.push('\n');
        (out, self.starts)
    }

    fn part(&mut self, part: &Part, globals: &[Global], funcs: &[Func], last: bool) {
        let wrapper = part.name.filter(|_| !self.nvidia());
        if let Some(name) = wrapper {
            let producer = part.producer.map_or(String::new(), |p| format!(" attributes {{producer = {}}}", escape(p)));
            match part.at {
                Some(at) => self.before(at),
                None => self.before_module(),
            }
            self.line(&format!("cuda_tile.module {}{producer} {{", symbol_text(name)));
            self.indent += 1;
        }
        enum Item<'m> {
            Global(&'m Global),
            Func(&'m Func),
        }
        let mut items: Vec<(Span, Item)> = globals.iter().map(|g| (g.span, Item::Global(g))).collect();
        items.extend(funcs.iter().map(|f| (f.span, Item::Func(f))));
        if self.comments.is_some() {
            items.sort_by_key(|(span, _)| span.start);
        }
        let end = items.last().map(|(span, _)| span.end);
        for (i, (_, item)) in items.into_iter().enumerate() {
            match item {
                Item::Global(g) => {
                    self.before(g.span.start);
                    let line = self.global(g) + &self.loc(&g.loc);
                    self.statement(&line);
                    self.after(g.span.end);
                }
                Item::Func(f) => {
                    if self.comments.is_none() && !self.nvidia() && i > 0 {
                        self.lines.push(String::new());
                    }
                    self.before(f.span.start);
                    Body::new(self, f).func();
                }
            }
        }
        if wrapper.is_some() {
            self.before_close(end.filter(|_| !last));
            self.indent -= 1;
            self.line("}");
        }
    }

    fn global(&self, g: &Global) -> String {
        let ty = Type::Tile(TileType::of(g.value.shape.clone(), Elem::Num(g.value.dtype)));
        let (private, constant) = match (self.nvidia(), g.private, g.constant) {
            (true, private, constant) => {
                (if private { " private " } else { " " }, if constant { " constant" } else { "" })
            }
            (false, private, constant) => {
                (if private { " private" } else { "" }, if constant { " constant" } else { "" })
            }
        };
        let alignment = if g.alignment == 0 { String::new() } else { format!(" alignment = {}", g.alignment) };
        let value = elements_text(&g.value, self.style);
        format!("global{private}{constant} {}{alignment} {value} : {}", symbol_text(&g.name), type_text(&ty))
    }

    /// ` loc(...)`, empty if locations are not written.
    pub fn loc(&self, loc: &Loc) -> String {
        self.locations.reference(loc)
    }

    pub fn hints(&self, h: &Hints) -> String {
        hints_text(h, self.style)
    }
}

/// `@name`, quoted if the name is not a plain word.
pub(super) fn symbol_text(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    if name.starts_with(starts) && name.chars().all(plain) { format!("@{name}") } else { format!("@{}", escape(name)) }
}
