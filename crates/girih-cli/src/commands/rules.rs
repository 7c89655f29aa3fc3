//! `girih rules`: decompositions and rewrite rules in the order they run, one of them explained, and the knobs.

use girih_compiler::base::words::list;
use girih_compiler::pipeline;
use girih_compiler::tile::heuristics;
use girih_compiler::tile::knobs::{ALL, Description, Knobs};
use girih_compiler::tile::target::Target;

use crate::cli::RulesArgs;
use crate::columns;
use crate::failure::Failure;
use crate::source::suggestion;

/// Columns of the names.
const NAME: usize = 24;

pub fn run(args: &RulesArgs) -> Result<(), Failure> {
    let rules = pipeline::descriptions();
    let Some(wanted) = &args.name else {
        for (letter, title) in [
            ("o:", "Decompositions: each operation of a model becomes primitives"),
            ("n:", "Graph rules: the operations of a model become fewer and simpler"),
            ("l:", "Loop rules: loop nests become fewer and simpler"),
        ] {
            outln!("{title}")?;
            let of = rules.iter().filter(|r| r.name.starts_with(letter));
            columns::print(of.map(|r| (r.name.as_str(), columns::first_sentence(r.doc))), NAME)?;
            out!("\n")?;
        }
        let mut shown: Vec<&[&str]> = vec![];
        for rule in rules.iter().filter(|r| !r.targets.is_empty()) {
            if shown.contains(&&rule.targets[..]) {
                continue;
            }
            shown.push(&rule.targets);
            let of =
                if rule.targets.len() == Target::NAMES.len() { "every target".into() } else { list(&rule.targets) };
            outln!("Tile rules of {of}: the nests are placed")?;
            let of = rules.iter().filter(|r| r.targets == rule.targets);
            columns::print(of.map(|r| (r.name.as_str(), columns::first_sentence(r.doc))), NAME)?;
            out!("\n")?;
        }
        outln!("Knobs: --knob NAME=VALUE, with their ranges and defaults; a rule chooses where there is no default")?;
        let defaults = Knobs::default();
        let shown = |k: &Description| match defaults.value(k.name) {
            Some(value) => format!("{}..{}, {value}: {}", k.least, k.most, columns::first_sentence(k.doc)),
            None => format!("{}..{}: {}", k.least, k.most, columns::first_sentence(k.doc)),
        };
        columns::print(ALL.iter().map(|k| (k.name, shown(k))), NAME)?;
        outln!(
            "\n`girih rules NAME` explains a rule; NAME is its name or an operation of a model, such as aten.rms_norm."
        )?;
        return Ok(());
    };
    match rules.iter().find(|r| r.is(wanted)) {
        Some(rule) => {
            outln!("{}\n", rule.name)?;
            if !rule.handles.is_empty() {
                outln!("For {}.\n", rule.handles.join(", "))?;
            }
            if !rule.targets.is_empty() {
                outln!("For {}.\n", list(&rule.targets))?;
            }
            outln!("{}", rule.doc.trim())?;
            let numbers: Vec<_> = heuristics::ALL.iter().filter(|n| n.of == rule.short()).collect();
            if !numbers.is_empty() {
                outln!("\nIts numbers:")?;
                columns::print(numbers.iter().map(|n| (n.name, format!("{}: {}", n.value, n.doc.trim()))), NAME)?;
            }
            Ok(())
        }
        None => {
            let help = match wanted.contains('.') {
                true => suggestion("operations", wanted, rules.iter().flat_map(|r| r.handles).copied()),
                false => suggestion("rules", wanted, rules.iter().map(|r| r.short())),
            };
            say!("error: unknown rule `{wanted}`; {help}");
            Err(Failure::Said(1))
        }
    }
}
