//! The encoding of each operation in bytes, stated once for the reader and the writer.
//!
//! An operation is its number, its result types (a count first if the number of results or operands varies), a word of
//! flags if a part may be absent, its attributes, its operands and its regions. All of it follows from the operation
//! table; [`LATER`] adds the parts that appeared in a later version than their operation. Printed by
//! [`Layout::describe`]:
//!
//! ```text
//! load_view_tko: 0x3e | n types | flags{memory_scope, optimization_hints, token} | memory_ordering_semantics
//!     memory_scope? optimization_hints? inbounds[13.4] | %view n%index %token?
//! ```

use super::Version;
use super::tags::Since;
use crate::cuda_tile::ir::{Attr, AttrKey, Opcode};
use crate::cuda_tile::ops::{self, Arity, AttrInfo, AttrKind, OpInfo, Piece};
use crate::cuda_tile::words::Words;
use std::sync::LazyLock;

/// A part of an operation that is written since a later version than the operation itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Flags,
    Attr(AttrKey),
    Results,
}

const LATER: &[(Opcode, Part, Since)] = &[
    (Opcode::For, Part::Flags, (13, 2)),
    (Opcode::NegI, Part::Attr(AttrKey::Overflow), (13, 2)),
    (Opcode::TanH, Part::Attr(AttrKey::Rounding), (13, 2)),
    (Opcode::PrintTko, Part::Flags, (13, 2)),
    (Opcode::PrintTko, Part::Results, (13, 2)),
    (Opcode::Exp, Part::Attr(AttrKey::Rounding), (13, 3)),
    (Opcode::MmaF, Part::Flags, (13, 3)),
    (Opcode::FToI, Part::Flags, (13, 4)),
    (Opcode::LoadViewTko, Part::Attr(AttrKey::Inbounds), (13, 4)),
    (Opcode::StoreViewTko, Part::Attr(AttrKey::Inbounds), (13, 4)),
    (Opcode::AtomicRedViewTko, Part::Attr(AttrKey::Inbounds), (13, 5)),
];

/// The encoding of an attribute's presence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Always written; if the operation leaves it out, the table's default is written.
    Always,
    /// Written if the bit of the flags is set.
    IfFlag(u32),
    /// The bit of the flags is the whole attribute.
    Flag(u32),
}

/// An attribute, in the order of the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub attr: &'static AttrInfo,
    pub presence: Presence,
    /// In a version without it, the default holds.
    pub since: Since,
}

impl Field {
    /// Returns true if a value is the operation's default.
    pub fn is_default(&self, value: &Attr) -> bool {
        match value {
            Attr::Rounding(r) => r.word() == self.attr.default,
            Attr::Overflow(o) => o.word() == self.attr.default,
            Attr::Reduction(r) => r.word() == self.attr.default,
            _ => false,
        }
    }
}

/// The encoding of the number of operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// No count: there is one operand for each group.
    Fixed,
    /// One count of all operands comes first.
    Total,
    /// A count comes before each variadic group; a bit of the flags tells if an optional group is present.
    Groups,
}

/// The form of an operation in bytecode.
#[derive(Debug)]
pub struct Layout {
    pub info: &'static OpInfo,
    pub code: u16,
    pub since: Since,
    /// The number of results is written before their types.
    pub counted_results: bool,
    /// Versions before this one have none of the results.
    pub results_since: Since,
    /// The first version with the word of flags, if there is one.
    pub flags: Option<Since>,
    pub fields: Vec<Field>,
    pub operands: Operands,
    /// For each group, the bit of the flags for an optional group of operands.
    pub operand_bits: Vec<Option<u32>>,
    /// The bits of the flags with a meaning.
    pub known_flags: u64,
    /// The number of regions written; for 0 the number itself is not written.
    pub regions: usize,
}

impl Layout {
    fn of(info: &'static OpInfo, code: u16) -> Layout {
        let later = |part: Part| {
            let found = LATER.iter().find(|(op, p, _)| *op == info.opcode && *p == part);
            found.map_or(info.since, |(_, _, since)| *since)
        };
        let many = |groups: &[ops::Group]| groups.iter().any(|g| g.arity == Arity::Many);
        let operands = match info.operands.iter().filter(|g| g.arity != Arity::One).count() {
            0 => Operands::Fixed,
            1 => Operands::Total,
            _ => Operands::Groups,
        };
        let mut bits = 0..;
        let mut bit = || bits.next().unwrap_or(u32::MAX);
        let fields: Vec<Field> = info
            .attrs
            .iter()
            .map(|attr| {
                let presence = match attr.kind {
                    AttrKind::Unit => Presence::Flag(bit()),
                    _ if may_be_absent(info, attr) => Presence::IfFlag(bit()),
                    _ => Presence::Always,
                };
                Field { attr, presence, since: later(Part::Attr(attr.key)) }
            })
            .collect();
        let optional = |g: &ops::Group| operands == Operands::Groups && g.arity == Arity::Optional;
        let operand_bits: Vec<_> = info.operands.iter().map(|g| optional(g).then(&mut bit)).collect();
        let known_flags = known_flags(&fields, &operand_bits);
        Layout {
            info,
            code,
            since: info.since,
            counted_results: many(&info.operands) || many(&info.results),
            results_since: later(Part::Results),
            flags: (known_flags != 0).then(|| later(Part::Flags)),
            fields,
            operands,
            operand_bits,
            known_flags,
            regions: info.regions.1,
        }
    }

    /// The results in a version.
    pub fn results(&self, version: Version) -> &'static [ops::Group] {
        if version.has(self.results_since) { &self.info.results } else { &[] }
    }

    /// The layout on one line.
    pub fn describe(&self) -> String {
        let later = |since: Since| match since == self.since {
            true => String::new(),
            false => format!("[{}.{}]", since.0, since.1),
        };
        let mut parts = vec![format!("{}: {:#04x}", self.info.name, self.code)];
        match (self.counted_results, self.info.results.len()) {
            (true, _) => parts.push("n types".into()),
            (false, 0) => {}
            (false, 1) => parts.push("type".into()),
            (false, n) => parts.push(format!("{n} types")),
        }
        if let Some(since) = self.flags {
            let mut names: Vec<(u32, &str)> = vec![];
            for field in &self.fields {
                if let Presence::IfFlag(bit) | Presence::Flag(bit) = field.presence {
                    names.push((bit, field.attr.name));
                }
            }
            for (bit, group) in self.operand_bits.iter().zip(&self.info.operands) {
                names.extend(bit.map(|bit| (bit, group.name)));
            }
            names.sort_unstable();
            let names: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
            parts.push(format!("flags{}{{{}}}", later(since), names.join(", ")));
        }
        let field = |f: &Field| match f.presence {
            Presence::Always => Some(format!("{}{}", f.attr.name, later(f.since))),
            Presence::IfFlag(_) => Some(format!("{}?", f.attr.name)),
            Presence::Flag(_) => None,
        };
        let fields: Vec<String> = self.fields.iter().filter_map(field).collect();
        if !fields.is_empty() {
            parts.push(fields.join(" "));
        }
        let groups = self.info.operands.iter().map(|g| match (g.arity, self.operands) {
            (Arity::One, _) => format!("%{}", g.name),
            (Arity::Optional, _) => format!("%{}?", g.name),
            (Arity::Many, Operands::Groups) => format!("n%{}", g.name),
            (Arity::Many, _) => format!("%{}*", g.name),
        });
        let groups: Vec<String> =
            (self.operands == Operands::Total).then(|| "n".into()).into_iter().chain(groups).collect();
        if !groups.is_empty() {
            parts.push(groups.join(" "));
        }
        match self.regions {
            0 => {}
            1 => parts.push("1 region".into()),
            n => parts.push(format!("{n} regions")),
        }
        parts.join(" | ")
    }
}

fn known_flags(fields: &[Field], operands: &[Option<u32>]) -> u64 {
    let fields = fields.iter().map(|f| match f.presence {
        Presence::Always => None,
        Presence::IfFlag(bit) | Presence::Flag(bit) => Some(bit),
    });
    fields.chain(operands.iter().copied()).flatten().fold(0, |word, bit| word | 1 << bit)
}

/// Returns true if an operation may lack an attribute that has no default.
fn may_be_absent(info: &OpInfo, attr: &AttrInfo) -> bool {
    // Absent truth values are an empty list.
    let optional = |p: &Piece| matches!(p, Piece::Attr { index, optional: true } if info.attrs[*index].key == attr.key);
    attr.default.is_empty() && attr.kind != AttrKind::Bools && info.pieces.iter().any(optional)
}

static LAYOUTS: LazyLock<Vec<Option<Layout>>> =
    LazyLock::new(|| ops::all().iter().map(|info| Some(Layout::of(info, info.code?))).collect());

/// The operation of each number below 256.
static NUMBERS: LazyLock<[Option<Opcode>; 256]> = LazyLock::new(|| {
    let mut out = [None; 256];
    for info in ops::all() {
        if let Some(slot) = info.code.and_then(|code| out.get_mut(code as usize)) {
            *slot = Some(info.opcode);
        }
    }
    out
});

/// The layout of an operation; the extensions of older documents have none.
pub fn layout(opcode: Opcode) -> Option<&'static Layout> {
    LAYOUTS.get(opcode as usize)?.as_ref()
}

/// The layout of the operation with a number.
pub fn by_code(code: u64) -> Option<&'static Layout> {
    layout((*NUMBERS.get(usize::try_from(code).ok()?)?)?)
}

/// Every layout, in the order of the numbers.
pub fn all() -> Vec<&'static Layout> {
    let mut all: Vec<_> = LAYOUTS.iter().flatten().collect();
    all.sort_by_key(|l| l.code);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str) -> String {
        layout(ops::by_name(name).unwrap().opcode).unwrap().describe()
    }

    /// Copied by hand from files that were decoded byte by byte, one for each form of an operation.
    #[test]
    fn layouts_of_some_operations() {
        for line in [
            "absf: 0x00 | type | %source",
            "addf: 0x02 | type | flags{flush_to_zero} | rounding_mode | %lhs %rhs",
            "assert: 0x05 | message | %condition",
            "atomic_cas_tko: 0x07 | 2 types | flags{mask, token} | memory_ordering_semantics memory_scope \
             | %pointers %cmp %val %mask? %token?",
            "atomic_red_view_tko: 0x75 | n types | flags{token} | memory_ordering_semantics memory_scope mode \
             inbounds[13.5] | %view n%index %value %token?",
            "atomic_rmw_tko: 0x08 | 2 types | flags{mask, token} | memory_ordering_semantics memory_scope mode \
             | %pointers %arg %mask? %token?",
            "alloca: 0x71 | type | flags{global} | num_elem alignment",
            "break: 0x0a | n types | n %operands*",
            "constant: 0x10 | type | value",
            "divi: 0x15 | type | signedness rounding | %lhs %rhs",
            "exp: 0x17 | type | rounding_mode[13.3] | %source",
            "extract: 0x26 | n types | n %source %indices*",
            "for: 0x29 | n types | flags[13.2]{unsignedCmp} | n %lower %upper %step %inits* | 1 region",
            "ftoi: 0x2b | type | flags[13.4]{saturating} | signedness rounding_mode | %from",
            "gdc_wait_tko: 0x78 | type | n %token?",
            "get_tile_block_id: 0x30 | 3 types",
            "get_tensor_shape: 0x2f | n types | %src",
            "if: 0x32 | n types | %condition | 2 regions",
            "insert: 0x76 | n types | n %source %destination %indices*",
            "load_ptr_tko: 0x3d | 2 types | flags{memory_scope, optimization_hints, mask, padding, token} \
             | memory_ordering_semantics memory_scope? optimization_hints? | %source %mask? %padding? %token?",
            "load_view_tko: 0x3e | n types | flags{memory_scope, optimization_hints, token} \
             | memory_ordering_semantics memory_scope? optimization_hints? inbounds[13.4] | %view n%index %token?",
            "make_tensor_view: 0x43 | n types | %base n%dynamicShape n%dynamicStrides",
            "maxf: 0x45 | type | flags{propagate_nan, flush_to_zero} | %lhs %rhs",
            "mmaf: 0x49 | type | flags[13.3]{fast_acc} | %lhs %rhs %acc",
            "multimem_load_reduce_view_tko: 0x7b | n types | flags{memory_scope, token} \
             | memory_ordering_semantics memory_scope? reduction inbounds | %view n%index %token?",
            "multimem_reduce_view_tko: 0x7c | n types | flags{token} \
             | memory_ordering_semantics memory_scope reduction inbounds | %view %tile n%index %token?",
            "multimem_store_view_tko: 0x7d | n types | flags{memory_scope, token} \
             | memory_ordering_semantics memory_scope? inbounds | %view %tile n%index %token?",
            "print_tko: 0x55 | n types | flags[13.2]{token} | str | n%args %token?",
            "scan: 0x5e | n types | dim reverse identities | n %operands* | 1 region",
        ] {
            let name = line.split(':').next().unwrap();
            assert_eq!(described(name), line);
        }
    }

    #[test]
    fn numbers_lead_to_their_operations() {
        for l in all() {
            assert_eq!(by_code(l.code.into()).map(|found| found.info.opcode), Some(l.info.opcode));
        }
        assert!(by_code(0x19).is_none() && by_code(1 << 40).is_none());
        assert!(layout(Opcode::ExpCall).is_none());
    }
}
