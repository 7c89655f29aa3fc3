//! The parts of a step, and the table of steps that is made of them.
//!
//! A part is a field of a [`Step`](super::Step): what a line names (loops, buffers, memory, arrays), what stands behind `by`, `to` or `as`
//! (numbers, words), or the names behind `->`. Its type says how it is read and written; what messages call it is said in the row.
//! Numbers that follow each other have an `x` between them, and the word of a part that is true or not is its name: `unroll: bool`.

use std::collections::{BTreeMap, VecDeque};

use super::line::{Line, LoopRef, look, memories};
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::loops::model::{ArrayId, StepArg};
use crate::loops::print::Namer;
use crate::loops::walk;
use crate::num::DType;

/// The row's description of a part.
#[derive(Clone, Copy)]
pub struct Says {
    /// What messages call it.
    pub what: &'static str,
    /// The least number, or the least number of names.
    pub least: u32,
    /// The number where none stands there.
    pub absent: Option<u32>,
    /// The name of its field.
    pub word: &'static str,
}

/// A number from `least` on, or several.
pub const fn number(what: &'static str, least: u32) -> Says {
    Says { what, least, absent: None, word: "" }
}

/// The names of loops that a step makes.
pub const fn named(what: &'static str) -> Says {
    number(what, 1)
}

/// Loops, or none.
pub const fn any_number() -> Says {
    number("", 0)
}

impl Says {
    /// The number where none stands there.
    pub const fn or(self, absent: u32) -> Says {
        Says { absent: Some(absent), ..self }
    }
}

/// A part of a step as text.
pub trait Part: Sized {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String>;
    fn write(&self, w: &mut Writer<'_>, says: Says);
}

/// A kernel whose parts lines name, and the arguments of its parameters, if it is a model's.
pub struct Scope<'a> {
    kernel: &'a Kernel,
    args: &'a [StepArg],
    names: Namer<'a>,
}

impl<'a> Scope<'a> {
    pub fn new(kernel: &'a Kernel, args: &'a [StepArg]) -> Scope<'a> {
        Scope { kernel, args, names: Namer::new(kernel) }
    }
}

/// A line whose parts are read in order.
pub struct Reader<'a> {
    line: &'a Line,
    scope: &'a Scope<'a>,
    /// The word before them: `by`, `to` or `as`.
    pub before: &'static str,
    /// The words behind it that no part has read.
    pub rest: VecDeque<&'a str>,
    flags: Vec<&'static str>,
    /// A number was the last part: another one has an `x` before it.
    counted: bool,
    named: bool,
}

impl<'a> Reader<'a> {
    pub fn new(line: &'a Line, scope: &'a Scope<'a>) -> Reader<'a> {
        let rest = line.by.iter().map(String::as_str).collect();
        Reader { line, scope, before: "by", rest, flags: vec![], counted: false, named: false }
    }

    /// The next word.
    pub fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.rest.pop_front().ok_or_else(|| match self.line.by.last() {
            None => format!("expected `{}` and {what}", self.before),
            Some(last) => format!("expected {what} behind `{last}`"),
        })
    }

    /// A whole number.
    pub fn number(&mut self, what: &str, least: u32) -> Result<u32, String> {
        let word = self.word(what)?;
        let number = word.parse().ok().filter(|n| *n >= least);
        number.ok_or_else(|| format!("expected {what}, a whole number from {least} on, found `{word}`"))
    }

    /// One of these words.
    pub fn choice<T: Copy>(&mut self, known: &[(&str, T)]) -> Result<T, String> {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let words = words.join(" or ");
        let word = self.word(&words)?;
        let found = known.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *value).ok_or_else(|| format!("unexpected `{word}`; expected {words}"))
    }

    /// True if the word stands behind `by`.
    pub fn flag(&mut self, word: &'static str) -> bool {
        self.flags.push(word);
        let at = self.rest.iter().position(|w| *w == word);
        at.and_then(|at| self.rest.remove(at)).is_some()
    }

    /// Refuses what no part has read.
    pub fn end(self) -> Result<(), String> {
        match self.rest.front() {
            Some(word) if self.flags.is_empty() => Err(format!("unexpected `{word}`")),
            Some(word) => {
                Err(format!("unexpected `{word}`; {}", suggestion("words here", word, self.flags.into_iter())))
            }
            None if self.named || self.line.made.is_empty() => Ok(()),
            None => Err(format!("`{}` makes nothing that has a name", self.line.word)),
        }
    }
}

/// A line to which parts are added in order.
pub struct Writer<'a> {
    scope: &'a Scope<'a>,
    pub line: Line,
    counted: bool,
}

impl<'a> Writer<'a> {
    pub fn new(word: &str, scope: &'a Scope<'a>) -> Writer<'a> {
        Writer { scope, line: Line::new(word), counted: false }
    }

    /// Adds words behind `by`.
    pub fn by(&mut self, words: &str) {
        self.line.by.extend(words.split_whitespace().map(String::from));
    }
}

/// Something of a kernel that lines name.
pub trait Target: Copy {
    /// What messages call one, and several.
    const WHAT: [&'static str; 2];
    fn name(self, scope: &Scope<'_>) -> String;
    /// All of the kernel, by their names.
    fn all(scope: &Scope<'_>) -> BTreeMap<String, Self>;
    /// The one that a word names.
    fn find(all: &BTreeMap<String, Self>, word: &str) -> Result<Self, String> {
        let [one, several] = Self::WHAT;
        let help = || suggestion(several, word, all.keys().map(String::as_str));
        match all.get(word) {
            Some(found) => Ok(*found),
            None if all.is_empty() => Err(format!("the kernel has no {several}")),
            None => Err(format!("unknown {one} `{word}`; {}", help())),
        }
    }
}

/// `j` is the first loop of the name, and `j:2` the second.
impl Target for LoopRef {
    const WHAT: [&'static str; 2] = ["loop", "loops"];
    fn name(self, scope: &Scope<'_>) -> String {
        let name = scope.names.axis(self.axis);
        if self.nth == 0 { name } else { format!("{name}:{}", self.nth + 1) }
    }
    /// The last loop of each name.
    fn all(scope: &Scope<'_>) -> BTreeMap<String, Self> {
        let mut all = BTreeMap::new();
        look(scope.kernel, &mut |at, _| {
            all.insert(scope.names.axis(at.axis), at);
            true
        });
        all
    }
    fn find(all: &BTreeMap<String, Self>, word: &str) -> Result<Self, String> {
        let (name, nth) = word.split_once(':').unwrap_or((word, "1"));
        let Some(last) = all.get(name) else {
            let help = suggestion("loops", name, all.keys().map(String::as_str));
            return Err(format!("unknown loop `{name}`; {help}"));
        };
        let nth = nth.parse::<u32>().ok().and_then(|n| n.checked_sub(1)).filter(|nth| *nth <= last.nth);
        let nth = nth.ok_or_else(|| format!("there are {} loops of the name `{name}`", last.nth + 1))?;
        Ok(LoopRef { nth, ..*last })
    }
}

impl Target for BufId {
    const WHAT: [&'static str; 2] = ["buffer", "buffers"];
    fn name(self, scope: &Scope<'_>) -> String {
        scope.names.buf(self)
    }
    fn all(scope: &Scope<'_>) -> BTreeMap<String, Self> {
        walk::refs(&scope.kernel.body).bufs_defined.iter().map(|b| (scope.names.buf(*b), *b)).collect()
    }
}

/// Memory that a program takes for its block.
impl Target for ValId {
    const WHAT: [&'static str; 2] = ["memory", "memories"];
    fn name(self, scope: &Scope<'_>) -> String {
        scope.names.val(self)
    }
    fn all(scope: &Scope<'_>) -> BTreeMap<String, Self> {
        memories(&scope.kernel.body).into_iter().map(|v| (scope.names.val(v), v)).collect()
    }
}

/// An array of a model, by the name of the parameter that it is given for.
impl Target for ArrayId {
    const WHAT: [&'static str; 2] = ["array", "arrays"];
    fn name(self, scope: &Scope<'_>) -> String {
        let given = scope.args.iter().position(|arg| *arg == StepArg::Array(self));
        let param = given.and_then(|at| scope.kernel.params.get(at));
        param.map_or("?".to_string(), |param| scope.names.val(param.val))
    }
    fn all(scope: &Scope<'_>) -> BTreeMap<String, Self> {
        let array = |(param, arg): (&Param, &StepArg)| match arg {
            StepArg::Array(id) => Some((scope.names.val(param.val), *id)),
            StepArg::Symbol(_) => None,
        };
        scope.kernel.params.iter().zip(scope.args).filter_map(array).collect()
    }
}

impl<T: Target> Part for Vec<T> {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        let Line { word, targets, .. } = r.line;
        if targets.len() < says.least as usize {
            return Err(format!("expected the name of a {} behind `{word}`", T::WHAT[0]));
        }
        let all = T::all(r.scope);
        targets.iter().map(|target| T::find(&all, target)).collect()
    }
    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.line.targets = self.iter().map(|target| target.name(w.scope)).collect();
    }
}

impl<T: Target> Part for T {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        let all = <[T; 1]>::try_from(Vec::<T>::read(r, says)?);
        all.map(|[one]| one).map_err(|_| format!("`{}` takes one {}", r.line.word, T::WHAT[0]))
    }
    fn write(&self, w: &mut Writer<'_>, says: Says) {
        vec![*self].write(w, says);
    }
}

impl Part for u32 {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        if let (Some(absent), true) = (says.absent, r.rest.is_empty()) {
            return Ok(absent);
        }
        if r.counted {
            r.choice(&[("x", ())])?;
        }
        r.counted = true;
        r.number(says.what, says.least)
    }
    fn write(&self, w: &mut Writer<'_>, says: Says) {
        if says.absent != Some(*self) {
            w.by(&format!("{}{self}", if w.counted { "x " } else { "" }));
            w.counted = true;
        }
    }
}

impl Part for Vec<u32> {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        let mut out = vec![u32::read(r, says)?];
        while r.rest.front() == Some(&"x") {
            out.push(u32::read(r, says)?);
        }
        Ok(out)
    }
    fn write(&self, w: &mut Writer<'_>, says: Says) {
        self.iter().for_each(|n| n.write(w, says));
    }
}

impl Part for Vec<u64> {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        Ok(Vec::<u32>::read(r, says)?.into_iter().map(u64::from).collect())
    }
    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.by(&self.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "));
    }
}

impl Part for bool {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        Ok(r.flag(says.word))
    }
    fn write(&self, w: &mut Writer<'_>, says: Says) {
        w.by(if *self { says.word } else { "" });
    }
}

impl Part for DType {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<Self, String> {
        r.before = "to";
        let name = r.word("a type")?;
        let known = || suggestion("types", name, DType::ALL.into_iter().map(DType::name));
        DType::from_name(name).ok_or_else(|| format!("unknown type `{name}`; {}", known()))
    }
    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.line.before = "to";
        w.by(self.name());
    }
}

impl Part for Vec<String> {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        r.named = true;
        match r.line.made.is_empty() {
            true => Err(format!("expected `->` and {}", says.what)),
            false => Ok(r.line.made.clone()),
        }
    }
    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.line.made.clone_from(self);
    }
}

impl<const N: usize> Part for [String; N] {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        Vec::read(r, says)?.try_into().map_err(|_| format!("expected `->` and {}", says.what))
    }
    fn write(&self, w: &mut Writer<'_>, says: Says) {
        self.to_vec().write(w, says);
    }
}

impl Part for String {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<Self, String> {
        <[String; 1]>::read(r, says).map(|[name]| name)
    }
    fn write(&self, w: &mut Writer<'_>, says: Says) {
        [self.clone()].write(w, says);
    }
}

/// How a line of one form is read, and what the page of schedules says of it.
pub struct Row<Step> {
    pub word: &'static str,
    /// Which lines with this word have the form.
    pub has_form: fn(&Line) -> bool,
    pub read: fn(&mut Reader<'_>) -> Result<Step, String>,
    /// Lines of Markdown: a form in backticks, a colon, and its meaning, which may go on in the next line.
    pub docs: &'static [&'static str],
}

impl<Step> Row<Step> {
    /// The step that a line of this form states.
    pub fn step(&self, line: &Line, scope: &Scope<'_>) -> Result<Step, String> {
        let mut parts = Reader::new(line, scope);
        let step = (self.read)(&mut parts)?;
        parts.end()?;
        Ok(step)
    }
}

/// `steps! { NAME (what a call takes) rows }`: the type of the steps, their forms and words, their text, and what each does.
macro_rules! steps {
    ($(#[$type_doc:meta])* $step:ident ($($arg:ident: $arg_ty:ty),+) $(
        $(#[doc = $doc:literal])+
        $word:literal $name:ident { $($field:ident: $ty:ty $(= $says:expr)?),+ } $(if $has_form:expr)? => $call:expr;
    )+) => {
        $(#[$type_doc])*
        #[derive(Clone, PartialEq, Debug)]
        pub enum $step {
            $( $(#[doc = $doc])+ $name { $($field: $ty),+ } ),+
        }

        /// The forms of all primitives, in the order of the alphabet.
        pub const FORMS: &[$crate::tile::primitives::part::Row<$step>] = &[$(
            $crate::tile::primitives::part::Row {
                word: $word,
                has_form: steps!(@form $($has_form)?),
                read: |r| Ok($step::$name {
                    $($field: $crate::tile::primitives::part::Part::read(r, steps!(@says $field $($says)?))?),+
                }),
                docs: &[$($doc),+],
            }
        ),+];

        /// The word of every primitive, in the order of the alphabet.
        pub fn words() -> impl Iterator<Item = &'static str> + Clone {
            FORMS.chunk_by(|a, b| a.word == b.word).filter_map(|forms| forms.first()).map(|row| row.word)
        }

        impl $step {
            /// The step as text, in the names of the kernel that it is for.
            pub fn text(&self, scope: &$crate::tile::primitives::part::Scope<'_>) -> Line {
                match self {
                    $( $step::$name { $($field),+ } => {
                        let mut w = $crate::tile::primitives::part::Writer::new($word, scope);
                        $( $crate::tile::primitives::part::Part::write($field, &mut w, steps!(@says $field $($says)?)); )+
                        w.line
                    } )+
                }
            }

            fn call(&self, $($arg: $arg_ty),+) -> Result<(), String> {
                match self {
                    $( $step::$name { $($field),+ } => $call, )+
                }
            }
        }
    };
    (@form) => { |_| true };
    (@form $has_form:expr) => { $has_form };
    (@says $field:ident) => { steps!(@says $field $crate::tile::primitives::part::number("", 1)) };
    (@says $field:ident $says:expr) => { $crate::tile::primitives::part::Says { word: stringify!($field), ..$says } };
}
