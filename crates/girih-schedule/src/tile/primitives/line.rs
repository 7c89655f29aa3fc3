//! A step as one line of text: `split k by 64 -> kt, kk`.
//!
//! ```text
//! line   := WORD target,* (("by" | "to" | "as") WORD+)? ("->" NAME,*)?
//! target := NAME (":" INT)?                              the loop, buffer or memory of that name; `:2` is the second loop of the name
//! ```
//!
//! Names are those that the kernel has where the step stands: the names of its text as Tile IR.

use crate::base::id::Id;
use crate::loops::ir::*;
use crate::loops::walk;

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

    /// A line that has parts to come.
    pub fn new(word: &str) -> Line {
        Line { word: word.into(), targets: vec![], before: "by", by: vec![], made: vec![] }
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

/// The memory that a program takes for its block, in order of the text.
pub fn memories(body: &[Stmt]) -> Vec<ValId> {
    walk::stmts(body).filter_map(|s| if let Stmt::Alloca { dst, .. } = s { Some(*dst) } else { None }).collect()
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

/// The same, or a sentence that says that there is none.
pub fn loop_at(kernel: &Kernel, name: LoopRef) -> Result<&For, String> {
    find(kernel, name).ok_or_else(|| "the loop is gone".into())
}

/// True if a loop is one of the statements, or stands in one.
pub fn holds(body: &[Stmt], f: &For) -> bool {
    walk::loops(body).any(|l| std::ptr::eq(l, f))
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
        return Err("the loop is gone".into());
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
    if found < loops.len() { Err("the loop is gone".into()) } else { Ok(()) }
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
    for l in walk::loops(body) {
        next(seen, l.axis);
    }
}
