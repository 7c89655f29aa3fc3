use super::*;
use crate::cuda_tile::parse::parse;

fn module(text: &str) -> Module {
    let parsed = parse(text);
    parsed.module.unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics))
}

/// Taken apart by hand: 13.1, one entry without parameters or places that returns.
#[test]
fn the_smallest_program() {
    let bytes = write(&module("entry @k() {\n  return\n}\n"), Version::V13_1).unwrap();
    let mut expected = MAGIC.to_vec();
    expected.extend([13, 1, 0, 0]);
    // One function: name 0, type 0, kernel, no places, 3 bytes: return, no results, no operands.
    expected.extend([0x82, 9, 8, 0xcb]);
    expected.extend([1, 0, 0, 2, 0, 3, 0x5c, 0, 0]);
    // One type: a function of nothing.
    expected.extend([0x85, 11, 4, 0xcb, 0xcb, 0xcb, 0xcb]);
    expected.truncate(expected.len() - 4);
    let at = expected.len();
    expected.resize(at.next_multiple_of(4), 0xcb);
    expected.extend([1, 0xcb, 0xcb, 0xcb, 0, 0, 0, 0, 16, 0, 0]);
    expected.extend([0x81, 9, 4]);
    let at = expected.len();
    expected.resize(at.next_multiple_of(4), 0xcb);
    expected.extend([1, 0xcb, 0xcb, 0xcb, 0, 0, 0, 0, b'k', 0]);
    assert_eq!(bytes, expected);
}
