//! All rules by their names in traces, with their own descriptions: the content of `girih rules` and the pages in
//! `docs`.
//!
//! In: the lists of rules. Out: a [`Description`] of each, in the order in which the stages run.
//!
//! Example: `o:rms_norm`, for `aten.rms_norm` and others; `t:006_stage_inputs`.

use crate::base::rule::Rules;
use crate::graph::{decompose, simplify};
use crate::tile::target::Target;
use crate::{loops, tile};

/// The description of a rule for a reader.
#[derive(Clone, Debug)]
pub struct Description {
    /// The stage's letter and the rule's name: `o:rms_norm`, `t:006_stage_inputs`.
    pub name: String,
    /// For a decomposition, the operations of models that it handles.
    pub handles: &'static [&'static str],
    /// For a rule of Tile IR, the targets with the rule in their list; its number is that in the list of the first of
    /// them.
    pub targets: Vec<&'static str>,
    /// Markdown: a summary, before `-->` after, the reasons for refusals.
    pub doc: &'static str,
}

impl Description {
    /// The summary's first sentence, without its point.
    pub fn first_sentence(&self) -> String {
        first_sentence(self.doc)
    }

    /// The name without the letter: `rms_norm`, `006_stage_inputs`.
    fn bare(&self) -> &str {
        self.name.split_once(':').map_or(&self.name, |(_, name)| name)
    }

    /// The name without the letter and the number: `rms_norm`, `stage_inputs`.
    pub fn short(&self) -> &str {
        without_number(self.bare())
    }

    /// Returns true if `name` means this rule: `t:006_stage_inputs`, `006_stage_inputs`, `stage_inputs`, or an
    /// operation that it handles. The number may differ: it is that of the rule in the list of the target that was
    /// traced.
    pub fn is(&self, name: &str) -> bool {
        let letter = self.name.split_once(':').map(|(letter, _)| letter);
        let bare = match name.split_once(':') {
            Some((given, bare)) if Some(given) == letter => bare,
            Some(_) => return self.handles.contains(&name),
            None => name,
        };
        without_number(bare) == self.short() || self.handles.contains(&name)
    }
}

/// `stage_inputs` of `006_stage_inputs`.
fn without_number(name: &str) -> &str {
    match name.split_once('_') {
        Some((number, rest)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => name,
    }
}

/// The decompositions of models' operations (`o`), then the rules of Tensor IR (`n`), of Loop IR (`l`) and of Tile IR
/// (`t`); of the last, first the rules of the CPU and then the additional rules of other targets.
pub fn descriptions() -> Vec<Description> {
    let decompositions = decompose::all();
    let decompositions = decompositions.map(|rule| Description {
        name: format!("o:{}", rule.name),
        handles: rule.handles,
        targets: vec![],
        doc: rule.doc,
    });
    let mut all: Vec<Description> = decompositions.collect();
    add(&mut all, &simplify::rules());
    add(&mut all, &loops::fuse::rules());
    for target in Target::NAMES.into_iter().filter_map(Target::named) {
        let mut own = vec![];
        add(&mut own, &tile::plan_rules(&target));
        add(&mut own, &tile::rules(&target));
        for mut rule in own {
            match all.iter_mut().find(|r| !r.targets.is_empty() && r.short() == rule.short()) {
                Some(known) => known.targets.push(target.name),
                None => {
                    rule.targets.push(target.name);
                    all.push(rule);
                }
            }
        }
    }
    all
}

fn add<P, C>(all: &mut Vec<Description>, rules: &Rules<P, C>) {
    all.extend(rules.named().map(|(name, rule)| Description { name, handles: &[], targets: vec![], doc: rule.doc }));
}

/// The first sentence of a Markdown text, without its point.
pub fn first_sentence(doc: &str) -> String {
    let paragraph: Vec<&str> = doc.trim().lines().take_while(|l| !l.trim().is_empty()).collect();
    let text = paragraph.join(" ");
    text.split_once(". ").map_or(text.as_str(), |(first, _)| first).trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_first_sentence_may_take_two_lines() {
        assert_eq!(first_sentence("Does this\nand that. Then more.\n\nBelow."), "Does this and that");
        assert_eq!(first_sentence("Does this.\n\nBelow."), "Does this");
    }

    #[test]
    fn what_traces_of_any_target_print_is_known() {
        let all = descriptions();
        let mut printed = vec![];
        for target in Target::NAMES.into_iter().filter_map(Target::named) {
            printed.extend(tile::plan_rules(&target).named().map(|(name, rule)| (name, rule.name)));
            printed.extend(tile::rules(&target).named().map(|(name, rule)| (name, rule.name)));
        }
        printed.extend(loops::fuse::rules().named().map(|(name, rule)| (name, rule.name)));
        printed.extend(simplify::rules().named().map(|(name, rule)| (name, rule.name)));
        let numbers: BTreeSet<&String> = printed.iter().filter(|(_, n)| *n == "vectorise").map(|(n, _)| n).collect();
        assert!(!numbers.is_empty() && printed.len() > 100);
        for (name, rule) in &printed {
            let found: Vec<&str> = all.iter().filter(|r| r.is(name)).map(Description::short).collect();
            assert_eq!(found, [*rule], "{name}");
        }
        assert!(!all.iter().any(|r| r.is("l:020_vectorise") || r.is("_vectorise")));
    }

    #[test]
    fn a_name_means_one_rule() {
        let all = descriptions();
        let mut seen = BTreeSet::new();
        for rule in &all {
            assert!(seen.insert(rule.short()), "two rules are named {}", rule.short());
            assert!(rule.is(&rule.name) && rule.is(rule.short()), "{}", rule.name);
            assert!(rule.doc.trim().len() > 20, "{} has no description", rule.name);
        }
        for handle in all.iter().flat_map(|rule| rule.handles) {
            assert!(seen.insert(handle), "two rules are for {handle}");
        }
        let short = |name: &str| all.iter().filter(|r| r.is(name)).map(|r| r.short()).collect::<Vec<_>>();
        assert_eq!(short("rms_norm"), ["rms_norm"]);
        assert_eq!(short("aten.rms_norm"), ["rms_norm"]);
        assert_eq!(short("o:rms_norm"), ["rms_norm"]);
        assert_eq!(short("norm"), [""; 0]);
        assert_eq!(short("n:001_empty_tensors"), ["empty_tensors"]);
        let targets = |name: &str| all.iter().find(|r| r.short() == name).map(|r| r.targets.len());
        assert_eq!([targets("vectorise"), targets("cooperative_reduce")], [Some(1), Some(4)]);
        assert_eq!(targets("mark_unroll"), Some(Target::NAMES.len()));
    }
}
