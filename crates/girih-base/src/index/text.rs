//! Index expressions and masks as text, spelt alike in every IR: `bx*128 + i < n and m`.
//!
//! In: an expression and the names of its leaves, or tokens that hold one. Out: text that reads back to the same tree.
//! Invariant: an expression that is read is at most [`MAX_DEPTH`] operators deep.

use std::borrow::Cow;

use super::{AxisId, Cmp, Cond, Ix, Mask, ValId};

/// The deepest nesting of an expression that is read; the operators of one chain count too.
pub const MAX_DEPTH: usize = 200;

/// Comparisons by their signs.
pub const CMPS: [(&str, Cmp); 6] =
    [("==", Cmp::Eq), ("!=", Cmp::Ne), ("<", Cmp::Lt), ("<=", Cmp::Le), (">", Cmp::Gt), (">=", Cmp::Ge)];

impl Cmp {
    pub fn sign(self) -> &'static str {
        CMPS.iter().find(|(_, cmp)| *cmp == self).map_or("?", |(sign, _)| sign)
    }
}

/// The names of axes and values.
pub trait Names {
    fn axis(&self, axis: AxisId) -> Cow<'_, str>;
    fn val(&self, val: ValId) -> Cow<'_, str>;
}

/// The place of an expression in a text, which decides whether it needs brackets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// No expression needs brackets.
    Whole,
    /// A sum needs brackets: to the right of `+` or `-`, at an end of a range, as a factor.
    Term,
    /// All but a leaf need brackets: to the right of `*`.
    Leaf,
}

/// `s0*2 + i1//64`.
pub fn ix_text(ix: &Ix, names: &dyn Names) -> String {
    let mut out = String::new();
    write(ix, Level::Whole, names, &mut out);
    out
}

/// The same with a sum in brackets, the form of an end of a range: `0..(n + 1)`.
pub fn end_text(ix: &Ix, names: &dyn Names) -> String {
    let mut out = String::new();
    write(ix, Level::Term, names, &mut out);
    out
}

/// `i < n and m`; `true` for the mask that always holds.
pub fn mask_text(mask: &Mask, names: &dyn Names) -> String {
    let conds = mask.conds.iter().map(|c| cond_text(c, names));
    let vals = mask.vals.iter().map(|v| names.val(*v).into_owned());
    let terms: Vec<String> = conds.chain(vals).collect();
    if terms.is_empty() { "true".to_string() } else { terms.join(" and ") }
}

/// `i < n`.
pub fn cond_text(cond: &Cond, names: &dyn Names) -> String {
    format!("{} {} {}", ix_text(&cond.lhs, names), cond.cmp.sign(), ix_text(&cond.rhs, names))
}

fn write(ix: &Ix, level: Level, names: &dyn Names, out: &mut String) {
    let dim = |d: u8| ["x", "y", "z"].get(usize::from(d)).copied().unwrap_or("?");
    let (sign, own, left, right) = match ix {
        Ix::Const(c) => return out.push_str(&c.to_string()),
        Ix::Axis(a) => return out.push_str(&names.axis(*a)),
        Ix::Val { val, zext: false } => return out.push_str(&names.val(*val)),
        Ix::Val { val, zext: true } => return out.extend(["zext(", &names.val(*val), ")"]),
        Ix::Block(d) => return out.extend(["b", dim(*d)]),
        Ix::Grid(d) => return out.extend(["g", dim(*d)]),
        Ix::Thread => return out.push_str("tx"),
        Ix::Min(a, b) | Ix::Max(a, b) => {
            out.push_str(if matches!(ix, Ix::Min(..)) { "min(" } else { "max(" });
            write(a, Level::Whole, names, out);
            out.push_str(", ");
            write(b, Level::Whole, names, out);
            return out.push(')');
        }
        Ix::Add(..) => (" + ", Level::Whole, Level::Whole, Level::Term),
        Ix::Sub(..) => (" - ", Level::Whole, Level::Whole, Level::Term),
        Ix::Mul(..) => ("*", Level::Term, Level::Term, Level::Leaf),
        Ix::FloorDiv(..) => ("//", Level::Term, Level::Term, Level::Leaf),
        Ix::Mod(..) => ("%", Level::Term, Level::Term, Level::Leaf),
    };
    let Some((a, b)) = ix.operands() else { return };
    if own < level {
        out.push('(');
    }
    write(a, left, names, out);
    out.push_str(sign);
    write(b, right, names, out);
    if own < level {
        out.push(')');
    }
}

/// The source that an expression is read from.
pub trait Tokens {
    type Error;
    /// Takes a sign or a word, if it comes next.
    fn take(&mut self, text: &str) -> bool;
    /// Returns true if this word comes next, with a bracket after it.
    fn calls(&self, word: &str) -> bool;
    /// A number with its sign, or the leaf with a name.
    fn leaf(&mut self) -> Result<Ix, Self::Error>;
    /// The error for a token that is not the wanted one.
    fn unexpected(&self, wanted: &str) -> Self::Error;
    fn error(&self, message: &str) -> Self::Error;
}

fn require<T: Tokens>(tokens: &mut T, sign: &str) -> Result<(), T::Error> {
    if tokens.take(sign) { Ok(()) } else { Err(tokens.unexpected(&format!("`{sign}`"))) }
}

fn too_deep<T: Tokens>(tokens: &T) -> T::Error {
    tokens.error("the index expression nests too deeply")
}

/// A block id, an extent of the grid or the thread, by its name.
pub fn launch_leaf(word: &str) -> Option<Ix> {
    if word == "tx" {
        return Some(Ix::Thread);
    }
    let (kind, dim) = word.split_at_checked(1)?;
    let dim = ["x", "y", "z"].iter().position(|d| *d == dim)? as u8;
    match kind {
        "b" => Some(Ix::Block(dim)),
        "g" => Some(Ix::Grid(dim)),
        _ => None,
    }
}

/// Reads an expression.
pub fn read_ix<T: Tokens>(tokens: &mut T) -> Result<Ix, T::Error> {
    Ok(sum(tokens, 0)?.0)
}

/// Reads a mask: comparisons and truth values joined by `and`, or `true`.
pub fn read_mask<T: Tokens>(tokens: &mut T) -> Result<Mask, T::Error> {
    let mut mask = Mask::default();
    if tokens.take("true") {
        return Ok(mask);
    }
    loop {
        let lhs = read_ix(tokens)?;
        let cmp = CMPS.iter().find(|(sign, _)| tokens.take(sign)).map(|(_, cmp)| *cmp);
        match (cmp, lhs) {
            (Some(cmp), lhs) => mask.conds.push(Cond { lhs, cmp, rhs: read_ix(tokens)? }),
            (None, Ix::Val { val, zext: false }) => mask.vals.push(val),
            (None, _) => return Err(tokens.unexpected("a comparison")),
        }
        if !tokens.take("and") {
            return Ok(mask);
        }
    }
}

/// An expression and the depth of its tree.
type Deep = (Ix, usize);

/// Makes an expression of its operands.
type Make = fn(Box<Ix>, Box<Ix>) -> Ix;

fn join<T: Tokens>(tokens: &T, a: Deep, b: Deep, make: Make) -> Result<Deep, T::Error> {
    let depth = a.1.max(b.1) + 1;
    if depth > MAX_DEPTH {
        return Err(too_deep(tokens));
    }
    Ok((make(Box::new(a.0), Box::new(b.0)), depth))
}

/// Takes one of some operators, if it comes next.
fn operator<T: Tokens>(tokens: &mut T, of: &[(&str, Make)]) -> Option<Make> {
    of.iter().find(|(sign, _)| tokens.take(sign)).map(|(_, make)| *make)
}

fn sum<T: Tokens>(tokens: &mut T, level: usize) -> Result<Deep, T::Error> {
    let mut left = product(tokens, level)?;
    while let Some(make) = operator(tokens, &[("+", Ix::Add), ("-", Ix::Sub)]) {
        let right = product(tokens, level)?;
        left = join(tokens, left, right, make)?;
    }
    Ok(left)
}

fn product<T: Tokens>(tokens: &mut T, level: usize) -> Result<Deep, T::Error> {
    let mut left = atom(tokens, level)?;
    while let Some(make) = operator(tokens, &[("*", Ix::Mul), ("//", Ix::FloorDiv), ("%", Ix::Mod)]) {
        let right = atom(tokens, level)?;
        left = join(tokens, left, right, make)?;
    }
    Ok(left)
}

fn atom<T: Tokens>(tokens: &mut T, level: usize) -> Result<Deep, T::Error> {
    if level > MAX_DEPTH {
        return Err(too_deep(tokens));
    }
    if tokens.take("(") {
        let inner = sum(tokens, level + 1)?;
        require(tokens, ")")?;
        return Ok(inner);
    }
    for (word, make) in [("min", Ix::Min as Make), ("max", Ix::Max)] {
        if tokens.calls(word) {
            tokens.take(word);
            require(tokens, "(")?;
            let a = sum(tokens, level + 1)?;
            require(tokens, ",")?;
            let b = sum(tokens, level + 1)?;
            require(tokens, ")")?;
            return join(tokens, a, b, make);
        }
    }
    Ok((tokens.leaf()?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;
    impl Names for Plain {
        fn axis(&self, axis: AxisId) -> Cow<'_, str> {
            format!("i{}", axis.0).into()
        }
        fn val(&self, val: ValId) -> Cow<'_, str> {
            format!("v{}", val.0).into()
        }
    }

    struct Words<'a>(Vec<&'a str>, usize);
    impl<'a> Words<'a> {
        fn of(text: &'a str) -> Words<'a> {
            let bytes = text.as_bytes();
            let (mut all, mut at) = (vec![], 0);
            while at < text.len() {
                let word = |b: u8| b.is_ascii_alphanumeric();
                let mut end = at + 1;
                if word(bytes[at]) {
                    end += bytes[end..].iter().take_while(|b| word(**b)).count();
                } else if ["//", "<=", ">=", "==", "!="].iter().any(|p| text[at..].starts_with(p)) {
                    end += 1;
                }
                all.extend(Some(&text[at..end]).filter(|t| *t != " "));
                at = end;
            }
            Words(all, 0)
        }
        fn next(&self) -> &'a str {
            self.0.get(self.1).copied().unwrap_or("")
        }
    }

    impl Tokens for Words<'_> {
        type Error = String;
        fn take(&mut self, text: &str) -> bool {
            let is = self.next() == text;
            self.1 += usize::from(is);
            is
        }
        fn calls(&self, word: &str) -> bool {
            self.next() == word && self.0.get(self.1 + 1) == Some(&"(")
        }
        fn leaf(&mut self) -> Result<Ix, String> {
            let minus = self.take("-");
            let word = self.next();
            self.1 += 1;
            if word == "zext" {
                require(self, "(")?;
                let inner = self.leaf()?;
                require(self, ")")?;
                let Ix::Val { val, .. } = inner else { return Err(self.unexpected("a value")) };
                return Ok(Ix::Val { val, zext: true });
            }
            if let Some(leaf) = launch_leaf(word) {
                return Ok(leaf);
            }
            let id = word.get(1..).and_then(|n| n.parse().ok());
            match (word.as_bytes().first(), id) {
                (Some(b'i'), Some(n)) => Ok(Ix::Axis(AxisId(n))),
                (Some(b'v'), Some(n)) => Ok(Ix::Val { val: ValId(n), zext: false }),
                _ => {
                    let text = if minus { format!("-{word}") } else { word.to_string() };
                    text.parse().map(Ix::Const).map_err(|_| self.unexpected("an index expression"))
                }
            }
        }
        fn unexpected(&self, wanted: &str) -> String {
            format!("expected {wanted}, found `{}`", self.next())
        }
        fn error(&self, message: &str) -> String {
            message.into()
        }
    }

    /// Trees of every form, from a seed.
    fn tree(state: &mut u64, depth: u32) -> Ix {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let pick = (*state >> 33) % if depth == 0 { 7 } else { 14 };
        let mut two = || (Box::new(tree(state, depth - 1)), Box::new(tree(state, depth - 1)));
        match pick {
            0 => Ix::Const(((*state >> 40) % 9) as i64 - 4),
            1 => Ix::Axis(AxisId((*state >> 40) as u32 % 3)),
            2 => Ix::Val { val: ValId((*state >> 40) as u32 % 3), zext: false },
            3 => Ix::Val { val: ValId((*state >> 40) as u32 % 3), zext: true },
            4 => Ix::Block((*state >> 40) as u8 % 3),
            5 => Ix::Grid((*state >> 40) as u8 % 3),
            6 => Ix::Thread,
            n => {
                let makes: [Make; 7] = [Ix::Add, Ix::Sub, Ix::Mul, Ix::FloorDiv, Ix::Mod, Ix::Min, Ix::Max];
                let (a, b) = two();
                makes[n as usize - 7](a, b)
            }
        }
    }

    #[test]
    fn every_tree_reads_back() {
        let mut state = 7;
        for n in 0..2000 {
            let ix = tree(&mut state, n % 5);
            for text in [ix_text(&ix, &Plain), end_text(&ix, &Plain)] {
                let mut words = Words::of(&text);
                assert_eq!(read_ix(&mut words).as_ref(), Ok(&ix), "{text}");
                assert_eq!(words.next(), "", "{text}");
            }
        }
    }

    #[test]
    fn brackets_stand_only_where_they_must() {
        let read = |text: &str| read_ix(&mut Words::of(text)).unwrap();
        for text in [
            "i0*2 + i1",
            "(i0 + 1)*2",
            "i0 - (i1 - 2)",
            "i0//4*4",
            "i0*(i1*2)",
            "min(i0 + 1, bx)%3",
            "zext(v1)*-4",
            "tx%32",
        ] {
            assert_eq!(ix_text(&read(text), &Plain), text);
        }
        assert_eq!(end_text(&read("v0 + 1"), &Plain), "(v0 + 1)");
        assert_eq!(end_text(&read("v0*2"), &Plain), "v0*2");
    }

    #[test]
    fn masks_read_back() {
        for text in ["true", "i0 < v1", "i0*2 + 1 >= v1 and v2", "v0 and v1", "bx != 3 and i1 == gx - 1"] {
            let mask = read_mask(&mut Words::of(text)).unwrap();
            assert_eq!(mask_text(&mask, &Plain), text);
        }
        assert_eq!(read_mask(&mut Words::of("i0 + 1")), Err("expected a comparison, found ``".to_string()));
    }

    #[test]
    fn what_nests_too_deeply_is_refused() {
        let brackets = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        let chain = vec!["1"; 1000].join("+");
        for text in [brackets, chain] {
            assert_eq!(read_ix(&mut Words::of(&text)), Err("the index expression nests too deeply".to_string()));
        }
        let fits = vec!["1"; MAX_DEPTH + 1].join("+");
        assert!(read_ix(&mut Words::of(&fits)).is_ok());
    }
}
