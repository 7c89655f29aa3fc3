use super::*;
use std::collections::BTreeSet;

#[test]
fn every_opcode_has_one_row() {
    let opcodes: Vec<Opcode> = all().iter().map(|i| i.opcode).collect();
    assert_eq!(opcodes, Opcode::ALL);
    for info in all() {
        assert_eq!(super::info(info.opcode).name, info.name);
        assert_eq!(by_name(info.name).map(|i| i.opcode), Some(info.opcode));
        assert_eq!(by_name(&format!("cuda_tile.{}", info.name)).map(|i| i.opcode), Some(info.opcode));
        assert!(info.doc.ends_with('.'), "{}", info.name);
    }
    let codes: BTreeSet<u16> = all().iter().filter_map(|i| i.code).collect();
    assert_eq!(codes.len(), all().iter().filter(|i| i.code.is_some()).count(), "two operations share a number");
}

#[test]
fn formats_mention_everything_once() {
    for info in all().iter().filter(|i| !i.format.is_empty()) {
        let mut seen = vec![0; info.operands.len()];
        let mut attrs = vec![0; info.attrs.len()];
        let mut results = vec![0; info.results.len()];
        for piece in &info.pieces {
            match piece {
                Piece::Operand(g) | Piece::Token(g) => seen[*g] += 1,
                Piece::Attr { index, .. } => attrs[*index] += 1,
                Piece::Types(roles) => roles.iter().for_each(|r| match r {
                    Role::Operands(g) => assert!(*g < seen.len(), "{}", info.name),
                    Role::Result(r) => results[*r] += 1,
                }),
                Piece::ResultTypes => results.iter_mut().for_each(|n| *n += 1),
                Piece::OptionalType(g) | Piece::SplatTypes(g) => assert!(*g < seen.len(), "{}", info.name),
                Piece::OptionalTokenType { .. } => results[0] += 1,
                Piece::Literal(_) => {}
            }
        }
        assert!(
            seen.iter().chain(&attrs).chain(&results).all(|&n| n == 1),
            "{}: {seen:?} {attrs:?} {results:?}",
            info.name
        );
    }
}

#[test]
fn numbers_of_some_operations() {
    let code = |name: &str| by_name(name).and_then(|i| i.code);
    let all =
        [("absf", 0x00), ("addf", 0x02), ("for", 0x29), ("load_ptr_tko", 0x3D), ("print_tko", 0x55), ("yield", 0x6D)];
    for (name, number) in all.into_iter().chain([("atan2", 0x6E), ("alloca", 0x71), ("insert", 0x76), ("fpowi", 0x79)])
    {
        assert_eq!(code(name), Some(number), "{name}");
    }
    assert_eq!(code("experimental$call"), None);
    assert_eq!(by_name("fpowf").map(|i| i.name), Some("pow"));
    assert_eq!(by_name("experimental$alloca").map(|i| i.name), Some("alloca"));
}

#[test]
fn misspelt_names() {
    assert_eq!(suggest("adf"), Some("addf"));
    assert_eq!(suggest("cuda_tile.load_ptr_tok"), Some("load_ptr_tko"));
    assert_eq!(suggest("brodcast"), Some("broadcast"));
    assert_eq!(suggest("make_partition"), Some("make_partition_view").filter(|_| false));
    assert_eq!(suggest("zzzzzzzz"), None);
    assert_eq!(suggest(&"a".repeat(1 << 20)), None);
}

#[test]
fn pages_say_what_the_table_says() {
    let text = page(by_name("addf").unwrap());
    for part in [
        "# addf",
        "`lhs`",
        "`rounding_mode`: nearest_even, zero",
        "(default nearest_even)",
        "bytecode 0x02, since 13.1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(page(by_name("pow").unwrap()).contains("also read as `fpowf`"));
    all().iter().for_each(|i| assert!(page(i).starts_with(&format!("# {}\n", i.name))));
}
