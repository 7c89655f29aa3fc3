//! The pages of the simulator and of races show what it prints: each kernel is run in one block, with its arrays of f32 filled, and the
//! report behind it must be that run's. `BLESS=1` writes the reports anew.

use std::path::PathBuf;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::sim::{Options, run};
use girih_compiler::kernel::{parse, verify};
use girih_compiler::loops;

fn report(text: &str) -> String {
    let kernel = parse::parse(text).unwrap();
    assert_eq!(verify::verify(&kernel), [""; 0], "{text}");
    let mut memory = VecMemory::new();
    let names = kernel.params.iter().map(|p| kernel.vals[*p].name.to_string());
    let args = names.map(|name| memory.add(&name, (0..1024u32).flat_map(|i| (i as f32).to_le_bytes()).collect()));
    let launch = Launch::new([1, 1, 1], args.collect());
    let placed = loops::ir::Kernel::default();
    run(&kernel, &placed, &launch, &mut memory, &mut Silent, &Options::default()).unwrap().to_string()
}

#[test]
fn the_page_shows_what_the_simulator_prints() {
    shows("simulator.md");
}

#[test]
fn the_page_of_races_shows_what_is_found() {
    shows("race.md");
}

fn shows(page: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(&path).unwrap();
    let (mut done, mut rest, mut kernel, mut runs) = (String::new(), page.as_str(), None, 0);
    while let Some(at) = rest.find("```text\n") {
        let begins = at + "```text\n".len();
        let end = begins + rest[begins..].find("```").unwrap();
        done += &rest[..begins];
        match rest[..at].trim_end().rsplit('\n').next() {
            Some("<!-- report -->") => {
                done += &report(kernel.take().expect("a report follows a kernel"));
                runs += 1;
            }
            comment => {
                kernel = (comment == Some("<!-- run -->")).then_some(&rest[begins..end]);
                done += &rest[begins..end];
            }
        }
        rest = &rest[end..];
        done += "```";
        rest = &rest["```".len()..];
    }
    done += rest;
    assert!(runs >= 2);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &done).unwrap();
    }
    assert!(
        done == page || std::env::var_os("BLESS").is_some(),
        "{} is not what is printed now:\n{done}",
        path.display()
    );
}
