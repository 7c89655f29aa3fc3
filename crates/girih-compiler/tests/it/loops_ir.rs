//! Every example, through every rule: what a rule leaves verifies, and its text reads back and prints the same.

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::loops::print::Dialect;
use girih_compiler::loops::{ir::Kernel, parse, print, verify};
use girih_compiler::pipeline::{self, Event, Observer, Options};

struct Checker {
    seen: usize,
}

fn check(kernel: &Kernel, dialect: Dialect) -> Result<(), String> {
    let text = print::print(kernel, dialect);
    if let Some(d) = verify::verify(kernel, dialect).first() {
        return Err(format!("{}\n{text}", d.message));
    }
    match parse::parse(&text) {
        Err(d) => Err(format!("{} at {:?}\n{text}", d.message, d.span)),
        Ok((back, read)) => {
            let again = print::print(&back, read);
            if again == text { Ok(()) } else { Err(format!("printed\n{text}\nread back as\n{again}")) }
        }
    }
}

impl Observer for Checker {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        let (ran, stage) = match event {
            Event::Loop(ran) => (ran, Dialect::Loop),
            Event::Tile(ran) => (ran, Dialect::Tile),
            _ => return Ok(()),
        };
        let Some(after) = ran.after else { return Ok(()) };
        self.seen += 1;
        check(after, stage).map_err(|e| Diagnostic::error(Code::InvalidIr, format!("{}: {e}", ran.name)))
    }
}

#[test]
fn every_rule_leaves_well_formed_ir_that_reads_back() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut checker = Checker { seen: 0 };
    let mut wrong = vec![];
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "mlir")) {
        let module = pipeline::front(&std::fs::read_to_string(path).unwrap()).unwrap().module;
        for entry in module.entries().map(|f| f.name.as_str()) {
            if let Err(e) = pipeline::lower(&module, entry, &Options::default(), &mut checker) {
                wrong.push(format!("{}, {entry}: {}", path.display(), e[0].message));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(checker.seen > 30, "{}", checker.seen);
}
