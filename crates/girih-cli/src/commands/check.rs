//! `girih check`: parses and verifies; of a Python script, its kernels. Diagnostics on standard error, exit 1 when one is an
//! error.

use girih::Error;
use girih::model::Weights;

use crate::cli::CheckArgs;
use crate::commands::by_hand;
use crate::failure::Failure;
use crate::scripts::{Checker, is_script};
use crate::{render, source};

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut bad = false;
    let mut checker = None;
    for path in &args.files {
        if super::model::is_model(path) {
            bad |= !super::model::check(path, args.json)?;
            continue;
        }
        if let Some(format) = Weights::format_of(path) {
            if let Err(failure) = super::model::weights::list(path, format) {
                failure.report();
                bad = true;
            }
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
        let program = if is_script(path) {
            let checker = match &mut checker {
                Some(checker) => checker,
                none => none.insert(Checker::start()?),
            };
            checker.check(&source.name, &source.text).map(|c| c.diagnostics).map_err(Error::Internal)
        } else if by_hand::is_one(path) {
            by_hand::load(&source).map(|_| vec![])
        } else {
            source::load(&source).map(|program| program.warnings().to_vec())
        };
        let diagnostics = match &program {
            Ok(diagnostics) => {
                bad |= diagnostics.iter().any(|d| d.is_error());
                diagnostics
            }
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
