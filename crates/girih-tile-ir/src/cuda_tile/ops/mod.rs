//! The table of operations: each is declared once in [`table`], and the parser, the printer, arity checks, the
//! bytecode reader and the reference pages read it there.
//!
//! # Conventions of [`super::ir::Op`]
//! * `groups` holds one count per operand group of the table, in its order, which is bytecode order: `load_ptr_tko` is
//!   source, mask, padding, token; `store_ptr_tko` destination, value, mask, token; `load_view_tko` view, index,
//!   token; `store_view_tko` tile, view, index, token; `for` lower, upper, step, inits; `make_tensor_view` base, shape,
//!   strides (dynamic ones only, the type knows which); `print_tko` args, token.
//! * `attrs` holds what the text gives and does not equal the table's default, in the table's order.
//! * Results are in order with their types, tokens included. `get_tensor_shape` and `get_index_space_shape` have one
//!   result per dimension.
//! * A `for` region's arguments are the induction variable and then the carried values; a `loop` region's the carried
//!   values; those of `reduce` and `scan` come in pairs, one pair per operand, in text order.
//! * An `if` has one region, or two when there is an `else`.
//! * Every region ends in a terminator: `continue` (for, loop), `yield` (if, reduce, scan, generate) or `return`
//!   (functions) is inserted, with no operands, where the text has none.
//!
//! # Assembly formats
//! A format is a list of pieces separated by blanks, read by `parse` and written by `print`:
//!
//! | piece | stands for |
//! |---|---|
//! | `%x` `%x?` `%x*` | the operand of a group; `, %x` if present; all of a group, separated by commas |
//! | `token?` | `token=%t` if present |
//! | `$a` `$a?` | an attribute, required or optional |
//! | `{x\|y}` | one type, that of each group or result named; `{x?}` is `, type` if the optional group is present |
//! | `{x~}` | the types of a variadic group: one for all, or each |
//! | `{results}` | one type for all results |
//! | `:token?` `->token?` | an optional `: token` or `-> token`; only the second is printed |
//! | anything else | itself |
//!
//! The empty format marks an operation whose text is written by hand.

mod scalar;
mod table;
#[cfg(test)]
mod tests;

use super::ir::{AttrKey, Opcode};
use crate::base::words::closest;
pub use scalar::scalar_op;
use std::sync::LazyLock;
pub use table::{ALIASES, AttrInfo, AttrKind};

/// The effect of an operation besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    Pure,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads and writes memory in one step.
    Atomic,
    /// Reserves memory.
    Alloc,
    /// Has an effect outside the kernel: prints, traps, fences, calls.
    Observable,
    /// Holds regions, and has their effects.
    Structured,
    /// Ends a region.
    Terminator,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    One,
    Optional,
    Many,
}

/// A named group of operands, or of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    pub name: &'static str,
    pub arity: Arity,
}

/// One piece of an assembly format; numbers index the operand groups, attributes and results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Literal(&'static str),
    Operand(usize),
    Token(usize),
    Attr {
        index: usize,
        optional: bool,
    },
    Types(Vec<Role>),
    /// `, type` when the optional operand group is present.
    OptionalType(usize),
    /// One type for all operands of the group, or one each.
    SplatTypes(usize),
    ResultTypes,
    OptionalTokenType {
        printed: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Operands(usize),
    Result(usize),
}

/// All that the compiler knows about an operation's form.
#[derive(Clone, Debug)]
pub struct OpInfo {
    pub opcode: Opcode,
    pub name: &'static str,
    /// Its heading in the reference.
    pub group: &'static str,
    /// The number in bytecode; `None` for the extensions.
    pub code: Option<u16>,
    /// The first bytecode version with the operation.
    pub since: (u8, u8),
    pub operands: Vec<Group>,
    pub attrs: &'static [AttrInfo],
    pub results: Vec<Group>,
    /// The least and the greatest number of regions.
    pub regions: (usize, usize),
    pub effect: Effect,
    pub format: &'static str,
    pub pieces: Vec<Piece>,
    pub doc: &'static str,
}

impl OpInfo {
    pub fn attr(&self, key: AttrKey) -> Option<&'static AttrInfo> {
        self.attrs.iter().find(|a| a.key == key)
    }
    /// The position of an operand group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|g| g.name == name)
    }
    pub fn is_terminator(&self) -> bool {
        self.effect == Effect::Terminator
    }
    pub fn is_extension(&self) -> bool {
        self.code.is_none()
    }
    pub fn has_variadic_results(&self) -> bool {
        self.results.iter().any(|g| g.arity == Arity::Many)
    }
    /// The names of the operation in today's text, for help lines and pages: `addf`, `experimental$call`.
    pub fn aliases(&self) -> impl Iterator<Item = &'static str> + '_ {
        ALIASES.iter().filter(|(_, op)| *op == self.opcode).map(|(name, _)| *name)
    }
}

fn groups(spec: &'static str) -> Vec<Group> {
    let group = |word: &'static str| match word.as_bytes().last() {
        Some(b'?') => Group { name: word.trim_end_matches('?'), arity: Arity::Optional },
        Some(b'*') => Group { name: word.trim_end_matches('*'), arity: Arity::Many },
        _ => Group { name: word, arity: Arity::One },
    };
    spec.split_whitespace().map(group).collect()
}

impl OpInfo {
    fn compile(group: &'static str, row: &table::Row) -> OpInfo {
        let mut info = OpInfo {
            opcode: row.opcode,
            name: row.name,
            group,
            code: row.code,
            since: row.since,
            operands: groups(row.operands),
            attrs: row.attrs,
            results: groups(row.results),
            regions: row.regions,
            effect: row.effect,
            format: row.format,
            pieces: vec![],
            doc: row.doc,
        };
        info.pieces = row.format.split_whitespace().map(|word| info.piece(word)).collect();
        info
    }

    /// The table is our own, so the table's test catches a piece that names nothing.
    fn piece(&self, word: &'static str) -> Piece {
        let bare = |w: &'static str| w.trim_end_matches(['?', '*', '~']);
        let operand = |name: &str| self.group(name).unwrap_or(usize::MAX);
        if word == "token?" {
            return Piece::Token(operand("token"));
        }
        if let ":token?" | "->token?" = word {
            return Piece::OptionalTokenType { printed: word == "->token?" };
        }
        if word == "{results}" {
            return Piece::ResultTypes;
        }
        if let Some(name) = word.strip_prefix('%') {
            return Piece::Operand(operand(bare(name)));
        }
        if let Some(name) = word.strip_prefix('$') {
            let index = self.attrs.iter().position(|a| a.name == bare(name)).unwrap_or(usize::MAX);
            return Piece::Attr { index, optional: name.ends_with('?') };
        }
        let Some(roles) = word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) else {
            return Piece::Literal(word);
        };
        if roles.ends_with('?') {
            return Piece::OptionalType(operand(bare(roles)));
        }
        if roles.ends_with('~') {
            return Piece::SplatTypes(operand(bare(roles)));
        }
        let role = |name: &str| match self.group(name) {
            Some(i) => Role::Operands(i),
            None => Role::Result(self.results.iter().position(|r| r.name == name).unwrap_or(usize::MAX)),
        };
        Piece::Types(roles.split('|').map(role).collect())
    }
}

static TABLE: LazyLock<Vec<OpInfo>> = LazyLock::new(|| {
    let mut all: Vec<OpInfo> =
        table::GROUPS.iter().flat_map(|(group, rows)| rows.iter().map(|row| OpInfo::compile(group, row))).collect();
    all.sort_by_key(|i| i.opcode);
    all
});

static NAMES: LazyLock<rustc_hash::FxHashMap<&'static str, Opcode>> = LazyLock::new(|| {
    let names = TABLE.iter().map(|i| (i.name, i.opcode));
    names.chain(ALIASES.iter().copied()).collect()
});

/// All operations, in the order of [`Opcode`].
pub fn all() -> &'static [OpInfo] {
    &TABLE
}

/// All operations under their headings, in the order of the table.
pub fn grouped() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static OpInfo>)> {
    table::GROUPS.iter().map(|(group, rows)| (*group, rows.iter().map(|row| info(row.opcode))))
}

/// The table's row of an opcode.
pub fn info(opcode: Opcode) -> &'static OpInfo {
    &TABLE[opcode as usize]
}

/// The operation with that name or alias, with or without the dialect's prefix.
pub fn by_name(name: &str) -> Option<&'static OpInfo> {
    let name = name.strip_prefix("cuda_tile.").unwrap_or(name);
    NAMES.get(name).map(|&op| info(op))
}

/// The operation that a misspelt name most likely meant.
pub fn suggest(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("cuda_tile.").unwrap_or(name);
    closest(name, TABLE.iter().map(|i| i.name).chain(["entry", "global", "module"]))
}

/// The reference page of an operation, as Markdown.
pub fn page(info: &OpInfo) -> String {
    let mut out = format!("# {}\n\n{}\n", info.name, info.doc);
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}:\n"));
            lines.iter().for_each(|l| out.push_str(&format!("* {l}\n")));
        }
    };
    let arity = |a: Arity| match a {
        Arity::One => "",
        Arity::Optional => " (optional)",
        Arity::Many => " (any number)",
    };
    let list = |g: &[Group]| g.iter().map(|g| format!("`{}`{}", g.name, arity(g.arity))).collect::<Vec<_>>();
    section("Operands", list(&info.operands));
    let attr = |a: &AttrInfo| match (a.words(), a.default) {
        (Some(words), "") => format!("`{}`: {}", a.name, words.join(", ")),
        (Some(words), default) => format!("`{}`: {} (default {default})", a.name, words.join(", ")),
        (None, _) => format!("`{}`: {}", a.name, a.kind.describe()),
    };
    section("Attributes", info.attrs.iter().map(attr).collect());
    section("Results", list(&info.results));
    let mut facts = vec![format!("effect: {:?}", info.effect).to_lowercase()];
    match info.code {
        Some(code) => facts.push(format!("bytecode {code:#04x}, since {}.{}", info.since.0, info.since.1)),
        None => facts.push("an extension of older documents, not in the public dialect".into()),
    }
    let aliases: Vec<_> = info.aliases().map(|a| format!("`{a}`")).collect();
    if !aliases.is_empty() {
        facts.push(format!("also read as {}", aliases.join(", ")));
    }
    if !info.format.is_empty() {
        facts.push(format!("text: `{} {}`", info.name, info.format));
    }
    section("Facts", facts);
    out
}
