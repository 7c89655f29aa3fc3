//! `girih check`: parses and verifies; diagnostics on standard error, exit 1 when one is an error.

use girih::Error;

use crate::cli::CheckArgs;
use crate::commands::by_hand;
use crate::failure::Failure;
use crate::{render, source};

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut bad = false;
    for path in &args.files {
        if super::model::is_model(path) {
            bad |= !super::model::check(path, args.json)?;
            continue;
        }
        let source = match source::read(path) {
            Ok(source) => source,
            Err(failure) => {
                failure.report();
                bad = true;
                continue;
            }
        };
        let program = match by_hand::is_one(path) {
            true => by_hand::load(&source).map(|_| vec![]),
            false => source::load(&source).map(|program| program.warnings().to_vec()),
        };
        let diagnostics = match &program {
            Ok(warnings) => warnings,
            Err(Error::Program(diagnostics)) => {
                bad = true;
                diagnostics
            }
            Err(_) => return Err(program.err().map_or(Failure::Said(70), Failure::within(&source))),
        };
        if args.json {
            for d in diagnostics {
                outln!("{}", render::json(&source, d))?;
            }
        } else {
            render::all(&source, diagnostics);
        }
    }
    if bad { Err(Failure::Said(1)) } else { Ok(()) }
}
