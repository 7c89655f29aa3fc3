//! A step as one line of text: `split k by 64 -> kt, kk`.
//!
//! ```text
//! line   := WORD target,* (("by" | "to" | "as") WORD+)? ("->" NAME,*)?
//! target := NAME (":" INT)?                              the loop, buffer or memory of that name; `:2` is the second loop of the name
//! ```
//!
//! Names are those that the kernel has where the step stands: the names of its text as Tile IR.

use crate::base::id::Id;
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::loops::print::Namer;
use crate::loops::walk;
use std::collections::BTreeMap;

/// A loop: the `nth` of those that count by the axis, from 0 and in order of the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LoopRef {
    pub axis: AxisId,
    pub nth: u32,
}

/// The words of a line, each as it stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub word: String,
    pub targets: Vec<String>,
    /// `by`, `to` or `as`, and what stands behind it.
    pub before: &'static str,
    pub by: Vec<String>,
    pub made: Vec<String>,
}

const BEFORE: [&str; 3] = ["by", "to", "as"];

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.word)?;
        let mut list = |before: &str, words: &[String], between: &str| match words.is_empty() {
            true => Ok(()),
            false => write!(f, " {before}{}", words.join(between)),
        };
        list("", &self.targets, ", ")?;
        list(&format!("{} ", self.before), &self.by, " ")?;
        list("-> ", &self.made, ", ")
    }
}

impl Line {
    /// What stands before a comment. `None` where nothing does.
    pub fn parse(text: &str) -> Option<Result<Line, String>> {
        let text = text.split('#').next().unwrap_or_default().trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if word.is_empty() {
            return None;
        }
        let (rest, made) = match rest.split_once("->") {
            Some((rest, made)) => (rest, list(made)),
            None => (rest, Ok(vec![])),
        };
        let mut targets: Vec<&str> = rest.split_whitespace().collect();
        let at = targets.iter().position(|w| BEFORE.contains(w));
        let by = at.map_or(vec![], |at| targets.split_off(at));
        let before = by.first().and_then(|w| BEFORE.into_iter().find(|b| b == w)).unwrap_or("by");
        let by = by.into_iter().skip(1).map(String::from).collect();
        let targets = list(&targets.join(" "));
        Some(targets.and_then(|targets| Ok(Line { word: word.into(), targets, before, by, made: made? })))
    }

    /// The same with another word before what stands behind the targets.
    pub fn with(self, before: &'static str) -> Line {
        Line { before, ..self }
    }

    pub fn new(word: &str, targets: Vec<String>, by: &[&dyn std::fmt::Display], made: &[&str]) -> Line {
        let by = by.iter().map(|w| w.to_string()).filter(|w| !w.is_empty()).collect();
        Line { word: word.into(), targets, before: "by", by, made: made.iter().map(|n| n.to_string()).collect() }
    }

    /// The whole number that stands at a place behind `by`.
    pub fn number(&self, at: usize, what: &str, least: u32) -> Result<u32, String> {
        let word = self.by.get(at).ok_or_else(|| format!("expected `by` and {what}"))?;
        let number = word.parse().ok().filter(|n| *n >= least);
        number.ok_or_else(|| format!("expected {what}, a whole number from {least} on, found `{word}`"))
    }

    /// The numbers, with `x` between them, that are the first `words` behind `by`.
    pub fn counts(&self, words: usize, what: &str, least: u32) -> Result<Vec<u32>, String> {
        let (mut counts, mut between) = (vec![], false);
        for at in 0..words {
            match between {
                false => counts.push(self.number(at, what, least)?),
                true if self.by[at] == "x" => {}
                true => return Err(format!("unexpected `{}`; expected x", self.by[at])),
            }
            between = !between;
        }
        Ok(counts)
    }

    /// Refuses words behind `by` from a place on, but for these.
    pub fn flags<const N: usize>(&self, from: usize, known: [&str; N]) -> Result<[bool; N], String> {
        match self.by.iter().skip(from).find(|w| !known.contains(&w.as_str())) {
            Some(word) if N == 0 => Err(format!("unexpected `{word}`")),
            Some(word) => Err(format!("unexpected `{word}`; {}", suggestion("words here", word, known.into_iter()))),
            None => Ok(known.map(|k| self.by.iter().skip(from).any(|w| w == k))),
        }
    }

    /// The names of what the step makes.
    pub fn made<const N: usize>(&self, what: &str) -> Result<[&str; N], String> {
        let names: Vec<&str> = self.made.iter().map(String::as_str).collect();
        names.try_into().map_err(|_| format!("expected `->` and {what}"))
    }
}

/// Words between commas.
fn list(text: &str) -> Result<Vec<String>, String> {
    if text.trim().is_empty() {
        return Ok(vec![]);
    }
    let one = |word: &str| {
        let word = word.trim();
        match word.split_whitespace().count() {
            1 => Ok(word.to_string()),
            0 => Err("expected a name beside the comma".to_string()),
            _ => Err(format!("expected a comma or `by` in `{word}`")),
        }
    };
    text.split(',').map(one).collect()
}

/// The names of a kernel's loops and buffers.
pub struct Scope<'a> {
    kernel: &'a Kernel,
    namer: Namer<'a>,
}

impl<'a> Scope<'a> {
    pub fn new(kernel: &'a Kernel) -> Scope<'a> {
        Scope { kernel, namer: Namer::new(kernel) }
    }

    pub fn name_of(&self, at: LoopRef) -> String {
        let name = self.namer.axis(at.axis);
        if at.nth == 0 { name } else { format!("{name}:{}", at.nth + 1) }
    }

    pub fn names_of(&self, loops: &[LoopRef]) -> Vec<String> {
        loops.iter().map(|at| self.name_of(*at)).collect()
    }

    pub fn buffer_name(&self, buf: BufId) -> String {
        self.namer.buf(buf)
    }

    /// The loops that a line names.
    pub fn loops(&self, line: &Line) -> Result<Vec<LoopRef>, String> {
        let mut count: BTreeMap<AxisId, u32> = BTreeMap::new();
        walk::visit(&self.kernel.body, &mut |s| {
            if let Stmt::For(f) = s {
                *count.entry(f.axis).or_default() += 1;
            }
        });
        let by_name: BTreeMap<String, AxisId> = count.keys().map(|a| (self.namer.axis(*a), *a)).collect();
        let one = |target: &String| {
            let (name, nth) = match target.split_once(':') {
                Some((name, nth)) => (name, nth.parse().ok().filter(|n: &u32| *n > 0)),
                None => (target.as_str(), Some(1)),
            };
            let Some(axis) = by_name.get(name) else {
                let help = suggestion("loops", name, by_name.keys().map(String::as_str));
                return Err(format!("unknown loop `{name}`; {help}"));
            };
            let all = count[axis];
            let nth = nth.filter(|n| *n <= all).ok_or_else(|| format!("there are {all} loops of the name `{name}`"))?;
            Ok(LoopRef { axis: *axis, nth: nth - 1 })
        };
        match line.targets.is_empty() {
            true => Err(format!("expected the name of a loop behind `{}`", line.word)),
            false => line.targets.iter().map(one).collect(),
        }
    }

    /// The only loop that a line names.
    pub fn loop_of(&self, line: &Line) -> Result<LoopRef, String> {
        match self.loops(line)?[..] {
            [one] => Ok(one),
            _ => Err(format!("`{}` takes one loop", line.word)),
        }
    }

    /// The buffers that a line names.
    pub fn buffers(&self, line: &Line) -> Result<Vec<BufId>, String> {
        let all = walk::refs(&self.kernel.body).bufs_defined;
        let by_name: BTreeMap<String, BufId> = all.iter().map(|b| (self.namer.buf(*b), *b)).collect();
        let one = |target: &String| match by_name.get(target) {
            Some(buf) => Ok(*buf),
            None => {
                let help = suggestion("buffers", target, by_name.keys().map(String::as_str));
                Err(format!("unknown buffer `{target}`; {help}"))
            }
        };
        match line.targets.is_empty() {
            true => Err(format!("expected the name of a buffer behind `{}`", line.word)),
            false => line.targets.iter().map(one).collect(),
        }
    }

    pub fn memory_name(&self, memory: ValId) -> String {
        self.namer.val(memory)
    }

    /// The memories that a line names, which a program takes for its block.
    pub fn memories(&self, line: &Line) -> Result<Vec<ValId>, String> {
        let all = memories(&self.kernel.body);
        let by_name: BTreeMap<String, ValId> = all.into_iter().map(|v| (self.namer.val(v), v)).collect();
        let one = |target: &String| match by_name.get(target) {
            Some(memory) => Ok(*memory),
            None if by_name.is_empty() => Err("the kernel takes no memory for its blocks".into()),
            None => {
                let help = suggestion("memories", target, by_name.keys().map(String::as_str));
                Err(format!("unknown memory `{target}`; {help}"))
            }
        };
        match line.targets.is_empty() {
            true => Err(format!("expected the name of memory behind `{}`", line.word)),
            false => line.targets.iter().map(one).collect(),
        }
    }

    /// The only buffer that a line names.
    pub fn buffer(&self, line: &Line) -> Result<BufId, String> {
        match self.buffers(line)?[..] {
            [one] => Ok(one),
            _ => Err(format!("`{}` takes one buffer", line.word)),
        }
    }
}

/// The memory that a program takes for its block, in order of the text.
pub fn memories(body: &[Stmt]) -> Vec<ValId> {
    let mut out = vec![];
    walk::visit(body, &mut |s| {
        if let Stmt::Alloca { dst, .. } = s {
            out.push(*dst);
        }
    });
    out
}

/// Shows `f` every loop, outer ones first, by the name that steps have for it; loops inside one are shown where `f` says so.
pub fn look<'a>(kernel: &'a Kernel, f: &mut dyn FnMut(LoopRef, &'a For) -> bool) {
    look_where(kernel, &|_| true, f);
}

/// The same but for what other statements hold of which `enter` does not hold.
pub fn look_where<'a>(kernel: &'a Kernel, enter: &dyn Fn(&Stmt) -> bool, f: &mut dyn FnMut(LoopRef, &'a For) -> bool) {
    let mut seen = vec![0u32; kernel.axes.len()];
    look_in(&kernel.body, true, &mut seen, enter, f);
}

fn look_in<'a>(
    body: &'a [Stmt],
    shown: bool,
    seen: &mut [u32],
    enter: &dyn Fn(&Stmt) -> bool,
    f: &mut dyn FnMut(LoopRef, &'a For) -> bool,
) {
    for s in body {
        let inner = match s {
            Stmt::For(l) => {
                let at = next(seen, l.axis);
                shown && f(at, l)
            }
            s => shown && enter(s),
        };
        for b in walk::bodies(s) {
            look_in(b, inner, seen, enter, f);
        }
    }
}

/// The loop of that name.
pub fn find(kernel: &Kernel, name: LoopRef) -> Option<&For> {
    let mut found = None;
    look(kernel, &mut |at, f| {
        found = found.or((at == name).then_some(f));
        found.is_none()
    });
    found
}

/// True if a loop is one of the statements, or stands in one.
pub fn holds(body: &[Stmt], f: &For) -> bool {
    let mut found = false;
    walk::visit(body, &mut |s| found |= matches!(s, Stmt::For(l) if std::ptr::eq(&**l, f)));
    found
}

/// The loop whose body ends with the loop of that name, and its name.
pub fn ends_with(kernel: &Kernel, name: LoopRef) -> Result<(LoopRef, &For), String> {
    let (inner, mut around) = (find(kernel, name).map(std::ptr::from_ref), None);
    look(kernel, &mut |at, f| {
        let last = f.body.last().and_then(|s| if let Stmt::For(l) = s { Some(&raw const **l) } else { None });
        if last.is_some() && last == inner {
            around = Some((at, f));
        }
        around.is_none()
    });
    around.ok_or_else(|| "it is not the last statement in the body of a loop".into())
}

fn next(seen: &mut [u32], axis: AxisId) -> LoopRef {
    let nth = seen.get_mut(axis.index()).map_or(0, |n| {
        *n += 1;
        *n - 1
    });
    LoopRef { axis, nth }
}

/// Lets `f` check each of these loops, and change it where it answers nothing else than yes. None is changed where one is refused.
pub fn change(
    kernel: &mut Kernel,
    loops: &[LoopRef],
    check: &mut dyn FnMut(&Kernel, &For) -> Result<(), String>,
    f: &mut dyn FnMut(&mut For),
) -> Result<(), String> {
    let mut refused = None;
    let mut found = 0;
    let seen: &Kernel = kernel;
    look(seen, &mut |at, l| {
        if loops.contains(&at) {
            found += 1;
            if let Err(why) = check(seen, l) {
                refused.get_or_insert(why);
            }
        }
        true
    });
    if let Some(why) = refused {
        return Err(why);
    }
    if found < loops.len() {
        return Err("the loop stands there no more".into());
    }
    let mut seen = vec![0u32; kernel.axes.len()];
    walk::visit_mut(&mut kernel.body, &mut |s| {
        if let Stmt::For(l) = s
            && loops.contains(&next(&mut seen, l.axis))
        {
            f(l);
        }
    });
    Ok(())
}

/// The statements that replace a loop, or why there are none.
pub type Rewrite<'a> = &'a mut dyn FnMut(&mut Kernel, &For) -> Result<Vec<Stmt>, String>;

/// Replaces a loop by the statements that `f` makes of it.
pub fn replace(kernel: &mut Kernel, at: LoopRef, f: Rewrite<'_>) -> Result<(), String> {
    replace_each(kernel, &[at], f)
}

/// Replaces each of some loops, which do not hold one another, by the statements that `f` makes of it.
pub fn replace_each(kernel: &mut Kernel, loops: &[LoopRef], f: Rewrite<'_>) -> Result<(), String> {
    let (mut seen, mut found) = (vec![0u32; kernel.axes.len()], 0);
    let mut body = std::mem::take(&mut kernel.body);
    let done = replace_in(&mut body, loops, &mut seen, &mut found, kernel, f);
    kernel.body = body;
    done?;
    if found < loops.len() { Err("the loop stands there no more".into()) } else { Ok(()) }
}

fn replace_in(
    body: &mut Vec<Stmt>,
    loops: &[LoopRef],
    seen: &mut [u32],
    found: &mut usize,
    kernel: &mut Kernel,
    f: Rewrite<'_>,
) -> Result<(), String> {
    let mut n = 0;
    while let Some(s) = body.get_mut(n) {
        if *found == loops.len() {
            break;
        }
        let made = match s {
            Stmt::For(l) if loops.contains(&next(seen, l.axis)) => Some(f(kernel, l)?),
            _ => None,
        };
        // Loops inside of one count, also where it is replaced.
        match made {
            None => {
                for inner in walk::bodies_mut(s) {
                    replace_in(inner, loops, seen, found, kernel, f)?;
                }
                n += 1;
            }
            Some(made) => {
                walk::bodies(s).into_iter().for_each(|inner| count(inner, seen));
                *found += 1;
                let len = made.len();
                body.splice(n..=n, made);
                n += len;
            }
        }
    }
    Ok(())
}

fn count(body: &[Stmt], seen: &mut [u32]) {
    walk::visit(body, &mut |s| {
        if let Stmt::For(l) = s {
            next(seen, l.axis);
        }
    });
}
