use crate::base::rule::{Context, Log, Rule};
use crate::loops::ir::*;
pub const RULE: Rule<Kernel> = Rule { name: "interchange", doc: "", run };
fn run(_p: &Kernel, _ctx: &Context, _log: &mut Log) -> Option<Kernel> {
    None
}
