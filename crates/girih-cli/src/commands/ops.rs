//! `girih ops`: the operations of tile programs, or the reference page of one.

use girih_compiler::cuda_tile::ops::{self, Arity, Group, OpInfo};
use serde_json::{Value, json};

use crate::cli::OpsArgs;
use crate::columns;
use crate::failure::Failure;
use crate::source::suggestion;

pub fn run(args: &OpsArgs) -> Result<(), Failure> {
    let Some(wanted) = &args.name else {
        if args.json {
            let all: Vec<Value> = ops::grouped().flat_map(|(_, ops)| ops.map(object)).collect();
            outln!("{}", Value::from(all))?;
            return Ok(());
        }
        let width = ops::all().iter().map(|op| op.name.len()).max().unwrap_or(0);
        for (i, (group, ops)) in ops::grouped().enumerate() {
            outln!("{}{group}", if i > 0 { "\n" } else { "" })?;
            columns::print(ops.map(|op| (op.name, columns::first_sentence(op.doc))), width)?;
        }
        outln!("\n`girih ops NAME` shows operands, attributes, results and the text form of one.")?;
        return Ok(());
    };
    match ops::by_name(wanted) {
        Some(op) if args.json => outln!("{}", object(op))?,
        Some(op) => out!("{}", ops::page(op))?,
        None => {
            let help = match ops::suggest(wanted).filter(|s| ops::by_name(s).is_some()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => {
                    // Part of a name helps too: `load`, `atomic`.
                    let part = |op: &&OpInfo| wanted.len() > 2 && op.name.contains(wanted.as_str());
                    let near: Vec<&str> = ops::all().iter().filter(part).map(|op| op.name).collect();
                    match near.is_empty() {
                        true => "`girih ops` lists them all".to_string(),
                        false => suggestion("operations of that kind", "", near),
                    }
                }
            };
            say!("error: unknown operation `{wanted}`; {help}");
            return Err(Failure::Said(1));
        }
    }
    Ok(())
}

fn object(op: &OpInfo) -> Value {
    let groups = |groups: &[Group]| -> Vec<Value> {
        let one = |g: &Group| {
            let count = match g.arity {
                Arity::One => "one",
                Arity::Optional => "optional",
                Arity::Many => "many",
            };
            json!({ "name": g.name, "count": count })
        };
        groups.iter().map(one).collect()
    };
    let attrs = op.attrs.iter().map(|a| {
        let default = Some(a.default).filter(|d| !d.is_empty());
        json!({ "name": a.name, "kind": a.kind.describe(), "words": a.words(), "default": default })
    });
    json!({
        "name": op.name,
        "group": op.group,
        "doc": op.doc,
        "operands": groups(&op.operands),
        "attributes": attrs.collect::<Vec<_>>(),
        "results": groups(&op.results),
        "effect": format!("{:?}", op.effect).to_lowercase(),
        "bytecode": op.code,
        "since": op.code.map(|_| format!("{}.{}", op.since.0, op.since.1)),
        "aliases": op.aliases().collect::<Vec<_>>(),
        "text": Some(op.format).filter(|f| !f.is_empty()),
    })
}
