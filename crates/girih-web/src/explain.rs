//! The compilation of a text, as `girih explain` shows it.

use girih_compiler::explain::{self, Explained, Watch};
use girih_compiler::pipeline::{self, Front, Options, Source};
use girih_compiler::source::expr;
use girih_compiler::tile::target::Target;
use serde_json::{Value, json};

use crate::notes::{self, Refused};
use crate::{Subject, Text};

pub fn answer(subject: &Subject<'_>, target: &Target) -> Result<Value, Refused> {
    let (explained, notes) = match subject {
        Subject::Program(text) => program(*text, target)?,
        Subject::Expression(text) => (expression(text, target)?, vec![]),
    };
    Ok(json!({
        "target": explained.target,
        "graph": explained.drawing.is_some(),
        "views": girih_page::explain::views(&explained, None),
        "data": girih_page::seen(&girih_page::explain::data(&explained)),
        "notes": notes,
    }))
}

/// Under the assumptions of fast kernels.
pub fn options(target: &Target) -> Options {
    Options { target: target.clone(), ..Options::default() }
}

fn program(text: Text<'_>, target: &Target) -> Result<(Explained, Vec<Value>), Refused> {
    let refused = |found: Vec<_>| Refused::of(text, &found);
    let Front { module, warnings } = pipeline::front(text.own).map_err(refused)?;
    let Some(entry) = module.entries().next() else {
        return Err(Refused::said("the program has no entry: no kernel that a launch could name"));
    };
    let options = options(target);
    let mut watch = Watch::new(&options);
    let lowered = pipeline::lower(&module, &entry.name, &options, &mut watch).map_err(refused)?;
    let mut explained = explain::program(&module, text.own, &lowered, watch, target);
    if let Some(written) = text.written {
        explained.add_python(&module, written.text, |file| file == written.file);
    }
    Ok((explained, notes::all(text, &warnings)))
}

fn expression(text: &str, target: &Target) -> Result<Explained, Refused> {
    let refused = |found: Vec<_>| Refused::of(text, &found);
    let graph = expr::evaluate(text, &[]).map_err(refused)?.graph;
    let options = options(target);
    let mut watch = Watch::new(&options);
    let compiled = pipeline::compile(Source::Model(&graph), &options, &mut watch).map_err(refused)?;
    let model = compiled.model.ok_or_else(|| Refused::said("the expression has no model"))?;
    let mut explained = explain::model(&graph, &model, &compiled.kernels, watch, target);
    explained.add_source(text, |file| file == expr::PLACE);
    Ok(explained)
}
