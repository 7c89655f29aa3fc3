//! The names of a tile program: which definition each `%name` and `@name` of the text means.
//!
//! In: a text, and the program that was read of it, perhaps only in part. Out: [`Names`]. Definitions are those of the program;
//! uses are tokens of the text, so that they are known in statements too that could not be read.
//!
//! ```text
//! %x, %t = load_ptr_tko weak %p : ...        definitions of x and t, a use of p
//! %y = addf %x, %x : tile<8xf32>             two uses of x
//! ```
//!
//! A use means the last definition of its name before it that stands in the same block or in one around it. Invariant: an
//! occurrence belongs to one definition at most, and a definition is an occurrence of its own.

use std::collections::BTreeMap;
use std::ops::Range;

use girih_compiler::base::lexer::{Lexer, Tok};
use girih_compiler::cuda_tile::ir::{Func, Module, ValueDef, ValueId};
use girih_compiler::cuda_tile::ops;
use girih_compiler::cuda_tile::print::type_text;

/// A name in the text.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// With the `%`.
    pub range: Range<usize>,
    /// Which definition it means, by its number.
    pub definition: Option<usize>,
}

/// A value, or several that one name stands for.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Without the `%`.
    pub name: String,
    pub range: Range<usize>,
    /// `tile<8xf32>`; of several values, each.
    pub types: Vec<String>,
    /// The extents of a tile, and its element: `8xf32`; where it is one value with a tile type that has extents.
    pub shape: Option<String>,
    /// A description of its definition: `result of addf`.
    pub what: String,
    /// The function it is in, by its number.
    pub function: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Names {
    /// In order of the text.
    pub occurrences: Vec<Occurrence>,
    pub definitions: Vec<Definition>,
    /// The functions' ranges, their names and where those stand.
    pub functions: Vec<(Range<usize>, String)>,
}

/// A token that matters here.
struct Token {
    range: Range<usize>,
    /// The blocks around it, innermost last, by where they begin.
    blocks: Vec<usize>,
}

impl Names {
    pub fn of(text: &str, module: Option<&Module>) -> Names {
        let mut names = Names::default();
        let tokens = tokens(text);
        let funcs = module.map_or(&[][..], |m| &m.funcs);
        // Definitions by where their name begins: several values may share one.
        let mut found: BTreeMap<usize, Definition> = BTreeMap::new();
        for (number, func) in funcs.iter().enumerate() {
            names.functions.push((func.span.start as usize..func.span.end as usize, func.name.clone()));
            for (id, value) in func.values.iter() {
                let (from, to) = (value.span.start as usize, value.span.end as usize);
                let Some(name) = text.get(from..to).and_then(|t| t.strip_prefix('%')) else { continue };
                // `%x:2` is a name and a number of values.
                let name = name.split(':').next().unwrap_or(name).trim_end().to_string();
                let one = Definition {
                    range: from..from + 1 + name.len(),
                    types: vec![type_text(&value.ty)],
                    shape: shape(&type_text(&value.ty)),
                    what: what(func, id),
                    function: number,
                    name,
                };
                let again = |earlier: &mut Definition| {
                    earlier.types.push(type_text(&value.ty));
                    earlier.shape = None;
                };
                found.entry(from).and_modify(again).or_insert(one);
            }
        }
        names.definitions = found.into_values().collect();
        let starts: BTreeMap<usize, usize> =
            names.definitions.iter().enumerate().map(|(n, d)| (d.range.start, n)).collect();
        // For each name, its definitions so far with the blocks around them.
        let mut seen: BTreeMap<&str, Vec<(usize, Vec<usize>)>> = BTreeMap::new();
        for token in &tokens {
            let Some(name) = text.get(token.range.start + 1..token.range.end) else { continue };
            let own = starts.get(&token.range.start).copied();
            if let Some(own) = own {
                seen.entry(name).or_default().push((own, token.blocks.clone()));
            }
            let visible = |(definition, blocks): &&(usize, Vec<usize>)| {
                let func = names.definitions.get(*definition).and_then(|d| names.functions.get(d.function));
                token.blocks.starts_with(blocks) && func.is_some_and(|(range, _)| range.contains(&token.range.start))
            };
            let definition =
                own.or_else(|| seen.get(name).and_then(|all| all.iter().rev().find(visible)).map(|(d, _)| *d));
            names.occurrences.push(Occurrence { range: token.range.clone(), definition });
        }
        names
    }

    /// The name at an offset, or right before it.
    pub fn at(&self, offset: usize) -> Option<&Occurrence> {
        let after = self.occurrences.partition_point(|o| o.range.start <= offset);
        let found = self.occurrences.get(after.checked_sub(1)?)?;
        (offset <= found.range.end).then_some(found)
    }

    /// The occurrences of a definition, itself among them.
    pub fn of_definition(&self, definition: usize) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().filter(move |o| o.definition == Some(definition))
    }

    /// The function that an offset lies in.
    pub fn function_at(&self, offset: usize) -> Option<usize> {
        self.functions.iter().position(|(range, _)| range.contains(&offset))
    }
}

/// `8x4xf32` of `tile<8x4xf32>`; nothing where there are no extents.
fn shape(ty: &str) -> Option<String> {
    let inner = ty.strip_prefix("tile<")?.strip_suffix('>')?;
    inner.starts_with(|c: char| c.is_ascii_digit()).then(|| inner.to_string())
}

fn what(func: &Func, id: ValueId) -> String {
    match func.values.get(id).map(|v| &v.def) {
        Some(ValueDef::Result { op, .. }) => {
            let name = func.ops.get(*op).map_or("an operation", |op| ops::info(op.opcode).name);
            format!("result of `{name}`")
        }
        Some(_) if func.params().contains(&id) => format!("parameter of `{}`", func.name),
        _ => "defined at the head of a block".to_string(),
    }
}

/// The `%` names of a text with the blocks around them. A name between parentheses before a block, such as the variable of a
/// `for`, counts as visible outside of the block too; a program may not use it there.
fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer::new(text);
    let (mut out, mut blocks) = (vec![], vec![]);
    loop {
        let (token, span) = lexer.next_token();
        let range = span.start as usize..span.end as usize;
        match token {
            Tok::Eof => return out,
            Tok::Punct('{') => blocks.push(range.start),
            Tok::Punct('}') => blocks.truncate(blocks.len().saturating_sub(1)),
            Tok::Percent(_) => out.push(Token { range, blocks: blocks.clone() }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::cuda_tile::parse::parse;

    const TEXT: &str = "cuda_tile.module @m {
  entry @a(%p: tile<ptr<f32>>, %n: tile<i32>) {
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %sum = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %zero) -> (tile<i32>) {
      %x = addi %acc, %i : tile<i32>
      continue %x : tile<i32>
    }
    for %i in (%zero to %n, step %one) : tile<i32> {
      %x = addi %sum, %i : tile<i32>
      continue
    }
  }
  entry @b(%n: tile<i32>) {
    %x = addi %n, %n : tile<i32>
  }
}
";

    /// The lines of a name's occurrences with the same definition as the one at the place of a text.
    fn same(text: &str, place: &str) -> Vec<usize> {
        let parsed = parse(text);
        let names = Names::of(text, parsed.module.as_ref().or(parsed.partial.as_ref()));
        let at = names.at(text.find(place).unwrap() + 1).unwrap();
        let Some(definition) = at.definition else { return vec![] };
        let line = |o: &Occurrence| text[..o.range.start].matches('\n').count() + 1;
        names.of_definition(definition).map(line).collect()
    }

    #[test]
    fn a_name_means_the_last_definition_around_it() {
        assert!(parse(TEXT).module.is_some(), "{:?}", parse(TEXT).diagnostics);
        assert_eq!(same(TEXT, "%x = addi %acc"), [6, 7]);
        assert_eq!(same(TEXT, "%x = addi %sum"), [10]);
        assert_eq!(same(TEXT, "%i in (%zero to %n, step %one) : tile<i32> {"), [9, 10]);
        assert_eq!(same(TEXT, "%acc = %zero"), [5, 6]);
        assert_eq!(same(TEXT, "%n: tile<i32>) {\n    %zero"), [2, 5, 9]);
        assert_eq!(same(TEXT, "%n, %n"), [14, 15, 15]);
        assert_eq!(same(TEXT, "%zero to"), [3, 5, 5, 9]);
    }

    #[test]
    fn names_are_known_in_a_program_with_errors() {
        let wrong =
            TEXT.replace("%x = addi %n, %n : tile<i32>", "%x = addi %n, %nothing : tile<i32>\n    %y = bogus %n %");
        assert!(parse(&wrong).module.is_none());
        assert_eq!(same(&wrong, "%n, %nothing"), [14, 15, 16]);
        assert_eq!(same(&wrong, "%nothing"), [0; 0]);
        assert_eq!(Names::of("%a %b }}} {", None).occurrences.len(), 2);
    }

    #[test]
    fn types_and_shapes_are_those_of_the_program() {
        let parsed = parse(TEXT);
        let names = Names::of(TEXT, parsed.module.as_ref());
        let sum = names.definitions.iter().find(|d| d.name == "sum").unwrap();
        assert_eq!(
            (sum.types.join(", ").as_str(), sum.what.as_str(), &sum.shape),
            ("tile<i32>", "result of `for`", &None)
        );
        assert_eq!(shape("tile<8x4xf32>").as_deref(), Some("8x4xf32"));
        assert_eq!(shape("tile<ptr<f32>>"), None);
    }
}
