//! `girih rules`: the rewrite rules, or one of them explained.

use crate::cli::RulesArgs;
use crate::failure::Failure;

pub fn run(_args: &RulesArgs) -> Result<(), Failure> {
    Ok(())
}
