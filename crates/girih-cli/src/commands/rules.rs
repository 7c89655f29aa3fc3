//! `girih rules`: the rewrite rules in the order they run, one of them explained, and the knobs.

use girih_compiler::base::knobs::{ALL, Description, Knobs};
use girih_compiler::pipeline;

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
            ("n:", "Graph rules: the operations of a model become fewer and simpler"),
            ("l:", "Loop rules: loop nests become fewer and simpler"),
            ("t:", "Tile rules: the nests are placed for the target"),
        ] {
            outln!("{title}")?;
            let of = rules.iter().filter(|(name, _)| name.starts_with(letter));
            columns::print(of.map(|(name, doc)| (name.as_str(), columns::first_sentence(doc))), NAME)?;
            out!("\n")?;
        }
        outln!("Knobs: --knob NAME=VALUE, with their ranges and defaults; a rule chooses what has no default")?;
        let defaults = Knobs::default();
        let shown = |k: &Description| match defaults.value(k.name) {
            Some(value) => format!("{}..{}, {value}: {}", k.least, k.most, columns::first_sentence(k.doc)),
            None => format!("{}..{}: {}", k.least, k.most, columns::first_sentence(k.doc)),
        };
        columns::print(ALL.iter().map(|k| (k.name, shown(k))), NAME)?;
        outln!("\n`girih rules NAME` explains a rule.")?;
        return Ok(());
    };
    // `t:001_name`, `001_name` and `name` all name it.
    let matches = |name: &str| {
        let bare = name.split_once(':').map_or(name, |n| n.1);
        name == wanted || bare == wanted || bare.split_once('_').is_some_and(|(_, n)| n == wanted)
    };
    match rules.iter().find(|(name, _)| matches(name)) {
        Some((name, doc)) => {
            outln!("{name}\n\n{}", doc.trim())?;
            Ok(())
        }
        None => {
            let names = rules.iter().filter_map(|(n, _)| n.split_once('_').map(|n| n.1));
            say!("error: no rule is named `{wanted}`; {}", suggestion("rules", wanted, names));
            Err(Failure::Said(1))
        }
    }
}
