//! `girih rules`: the rewrite rules in the order they run, one of them explained, and the knobs.

use girih_compiler::base::target::Knobs;
use girih_compiler::pipeline;

use crate::cli::RulesArgs;
use crate::failure::Failure;
use crate::source::suggestion;

pub fn run(args: &RulesArgs) -> Result<(), Failure> {
    let rules: Vec<(String, &str)> =
        pipeline::rules().map(|(letter, rule)| (format!("{}:{}", letter.text(), rule.name), rule.doc)).collect();
    let Some(wanted) = &args.name else {
        for (name, doc) in &rules {
            outln!("{name:<30} {}", first_sentence(doc));
        }
        outln!("\nknobs (--knob NAME=VALUE)");
        for knob in Knobs::default_set().all {
            let value = knob.value.map_or("chosen".to_string(), |v| v.to_string());
            outln!("{:<30} {value:>8}  {}..{}  {}", knob.name, knob.min, knob.max, first_sentence(knob.doc));
        }
        return Ok(());
    };
    // `t:001_name`, `001_name` and `name` all name it.
    let matches = |name: &str| {
        let bare = name.split_once(':').map_or(name, |n| n.1);
        name == wanted || bare == wanted || bare.split_once('_').is_some_and(|(_, n)| n == wanted)
    };
    match rules.iter().find(|(name, _)| matches(name)) {
        Some((name, doc)) => {
            outln!("{name}\n\n{}", doc.trim());
            Ok(())
        }
        None => {
            let names = rules.iter().filter_map(|(n, _)| n.split_once('_').map(|n| n.1));
            eprintln!("error: no rule is named `{wanted}`; {}", suggestion("rules", wanted, names));
            Err(Failure::Said(1))
        }
    }
}

fn first_sentence(doc: &str) -> String {
    let line = doc.trim().lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.').to_string()
}
