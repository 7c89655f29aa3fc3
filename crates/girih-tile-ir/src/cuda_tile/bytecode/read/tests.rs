use super::*;
use crate::cuda_tile::print::print_nvidia;
use std::path::{Path, PathBuf};

/// A file of sections, each with its number and contents, put where it may be.
fn file(version: [u8; 4], sections: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(version);
    for (id, contents) in sections {
        out.push(id | 0x80);
        out.extend(varint(contents.len() as u64));
        out.push(8);
        out.resize(out.len().next_multiple_of(8), 0xCB);
        out.extend(contents);
    }
    out.push(0);
    out
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = vec![];
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// A table whose offsets have `width` bytes.
fn table(width: usize, items: &[&[u8]]) -> Vec<u8> {
    let mut out = varint(items.len() as u64);
    out.resize(out.len().next_multiple_of(width), 0xCB);
    let mut at = 0u64;
    for item in items {
        out.extend(&at.to_le_bytes()[..width]);
        at += item.len() as u64;
    }
    out.extend(items.concat());
    out
}

const TILE_I32: &[u8] = &[13, 0, 0];
const KERNEL_TYPE: &[u8] = &[16, 1, 1, 0];
const RETURN: &[u8] = &[0x5c, 0, 0];

/// `entry @k(%arg0: tile<i32>)` of that version, with a body. Its types are i32, tile<i32>, the kernel's and more.
fn kernel(version: [u8; 4], more_types: &[&[u8]], body: &[u8]) -> Vec<u8> {
    let types = [&[&[3u8] as &[u8], TILE_I32, KERNEL_TYPE], more_types].concat();
    let mut function = vec![1, 0, 2, 2, 0];
    function.extend(varint(body.len() as u64));
    function.extend(body);
    file(version, &[(1, table(4, &[b"k", b"sm_80"])), (5, table(4, &types)), (2, function)])
}

const V13_1: [u8; 4] = [13, 1, 0, 0];
const V13_4: [u8; 4] = [13, 4, 0, 0];

fn text(bytes: &[u8]) -> String {
    print_nvidia(&read(bytes).unwrap().module)
}

/// The code, the place and the message of what is wrong with a file.
fn wrong(bytes: &[u8]) -> String {
    let found = read(bytes).unwrap_err();
    assert_eq!(found.len(), 1);
    let at = found[0].span.unwrap();
    assert!(at.start <= at.end && at.end as usize <= bytes.len(), "{found:?}");
    format!("{} {} {}", found[0].code.text(), at.start, found[0].message)
}

#[test]
fn a_kernel_made_by_hand() {
    let body = [&[0x03, 1, 0, 0, 0], RETURN].concat();
    let want = "entry @k(%arg0: tile<i32>) {\n  %0 = addi %arg0, %arg0 : tile<i32>\n  return\n}\n";
    assert_eq!(text(&kernel(V13_1, &[], &body)), want);
    assert_eq!(text(&kernel(V13_4, &[], &body)), want);
}

#[test]
fn values_of_a_region_are_forgotten_behind_it() {
    // A condition, an `if` whose branches each compute a value 2, and a use of the result, which is value 2 too.
    let condition = [0x6b, 4, 0, 0];
    let branch = [1, 0, 2, 0x01, 1, 0, 0x6d, 0, 1, 2];
    let body = [&condition[..], &[0x32, 1, 1, 1, 2], &branch, &branch, &[0x01, 1, 2], RETURN].concat();
    let want = "entry @k(%arg0: tile<i32>) {
  %0 = trunci %arg0 : tile<i32> -> tile<i1>
  %1 = if %0 -> (tile<i32>) {
    %3 = absi %arg0 : tile<i32>
    yield %3 : tile<i32>
  } else {
    %3 = absi %arg0 : tile<i32>
    yield %3 : tile<i32>
  }
  %2 = absi %1 : tile<i32>
  return
}
";
    assert_eq!(text(&kernel(V13_1, &[&[0], &[13, 3, 0]], &body)), want);
    // A value of the first branch is not one of the second.
    let other = [1, 0, 1, 0x6d, 0, 1, 2];
    let body = [&condition[..], &[0x32, 1, 1, 1, 2], &branch, &other, RETURN].concat();
    let file = kernel(V13_1, &[&[0], &[13, 3, 0]], &body);
    assert!(wrong(&file).ends_with("an operand is value 2 of 2"), "{}", wrong(&file));
}

/// Each part of a file, spoilt; places are worked out by hand from the layout that `kernel` gives it.
#[test]
fn bad_files() {
    let good = kernel(V13_1, &[], RETURN);
    // Strings from 16 to 34, types from 40 to 64, functions from 72 to 81.
    assert_eq!((good.len(), &good[72..]), (82, &[1, 0, 2, 2, 0, 3, 0x5c, 0, 0, 0][..]));
    let put = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        wrong(&file)
    };
    assert_eq!(wrong(b""), "E0701 0 the file does not start like tile bytecode");
    assert_eq!(put(0, &[0x7e]), "E0701 0 the file does not start like tile bytecode");
    assert_eq!(put(9, &[0]), "E0701 8 unknown version 13.0");
    assert_eq!(put(8, &[14]), "E0701 8 unknown version 14.1");
    assert_eq!(put(10, &[1]), "E0701 8 unknown version 13.1 with tag 1");
    assert_eq!(put(12, &[0x88]), "E0704 12 version 13.1 has no section 8");
    assert_eq!(put(12, &[0x87]), "E0704 12 version 13.1 has no section 7");
    assert_eq!(put(12, &[0x01]), "E0703 12 the section of strings must start at a multiple of 4 bytes");
    assert_eq!(put(14, &[3]), "E0703 14 the section of strings has the alignment 3");
    assert_eq!(put(14, &[0]), "E0703 14 the section of strings has the alignment 0");
    assert_eq!(put(13, &[0x7f]), "E0702 16 the section of strings takes 127 bytes, but 66 bytes are left");
    assert_eq!(put(16, &[0x7f]), "E0702 16 the number of strings is 127, but 17 bytes are left, enough for 4");
    assert_eq!(put(20, &[1]), "E0703 20 the offsets of strings do not ascend within the section: 1, 1 of 6");
    assert_eq!(put(24, &[7]), "E0703 20 the offsets of strings do not ascend within the section: 0, 7 of 6");
    assert_eq!(put(29, &[0xff]), "E0706 29 the string is not UTF-8");
    assert_eq!(put(56, &[23]), "E0704 56 version 13.1 has no type with tag 23");
    assert_eq!(put(56, &[22]), "E0704 56 version 13.1 has no type with tag 22");
    assert_eq!(put(58, &[9]), "E0705 58 a type that another is made of is type 9 of 3");
    assert_eq!(put(58, &[1]), "E0705 58 the elements of a tile are neither numbers nor pointers");
    assert_eq!(put(62, &[3]), "E0705 62 a parameter or result is of type 3 of 3");
    assert_eq!(
        put(63, &[1]),
        "E0702 63 the number of a function's parameters or results is 1, but no bytes are left, enough for 0"
    );
    assert_eq!(put(62, &[0]), "E0705 73 a parameter or result is not a tile, a view or a token");
    assert_eq!(put(72, &[2]), "E0702 72 the number of functions is 2, but 8 bytes are left, enough for 1");
    assert_eq!(put(73, &[2]), "E0705 73 the name of a function is string 2 of 2");
    assert_eq!(put(74, &[1]), "E0705 74 the type of a function is not a function type");
    assert_eq!(put(75, &[10]), "E0706 75 the function has unknown flags, 0xa");
    assert_eq!(put(77, &[4]), "E0702 78 the body of a function takes 4 bytes, but 3 bytes are left");
    assert_eq!(put(77, &[2]), "E0702 80 the number of operands takes 1 byte, but no bytes are left");
    assert_eq!(put(78, &[0x19]), "E0704 78 unknown operation 0x19");
    assert_eq!(put(79, &[1]), "E0707 79 `return` has 1 result, not 0");
    assert_eq!(put(81, &[1]), "E0702 82 the length of a section takes 1 byte, but no bytes are left");
    assert_eq!(wrong(&[&good[..], &[0]].concat()), "E0703 82 1 byte is left after the end of the bytecode");
    let parts = |sections: &[(u8, Vec<u8>)]| wrong(&file(V13_1, sections));
    assert_eq!(parts(&[(2, vec![0])]), "E0703 18 the file has no section of strings");
    let none = || (1, table(4, &[]));
    assert_eq!(parts(&[none()]), "E0703 21 the file has no section of functions");
    assert_eq!(parts(&[none(), none()]), "E0703 20 the section of strings appears twice");
    assert_eq!(parts(&[none(), (2, vec![0; 9])]), "E0703 25 8 bytes are left after the functions");
}

#[test]
fn bad_operations() {
    // The body starts at byte 78.
    let body = |bytes: &[u8]| wrong(&kernel(V13_1, &[], &[bytes, RETURN].concat()));
    assert_eq!(body(&[0x01, 1, 1]), "E0705 80 an operand is value 1 of 1");
    assert_eq!(body(&[0x01, 7, 0]), "E0705 79 the type of a result is type 7 of 3");
    assert_eq!(body(&[0x01, 0, 0]), "E0705 79 the type of a result is not a tile, a view or a token");
    assert_eq!(body(&[0x01, 0x81, 0, 0]), "E0706 79 the type of a result is written with more bytes than it needs");
    let long = [[0x01].as_slice(), &[0xff; 9], &[2]].concat();
    assert_eq!(body(&long), "E0706 79 the type of a result does not fit 64 bits");
    assert_eq!(body(&[0x03, 1, 4, 0, 0]), "E0704 80 version 13.1 has no `overflow` with number 4");
    assert_eq!(body(&[0x2a, 1, 7, 0]), "E0704 80 version 13.1 has no `rounding_mode` with number 7");
    assert_eq!(body(&[0x82, 0x80, 0x01]), "E0704 78 the preview operation `preview$call` (0x4002) is not supported");
    assert_eq!(body(&[0x02, 1, 2, 0, 0, 0]), "E0706 80 `addf` has unknown flags, 0x2");
    assert_eq!(body(&[0x6e, 1, 0, 0]), "E0704 78 version 13.1 has no `atan2` (0x6e)");
    assert_eq!(body(&[0x06, 1, 13, 0]), "E0704 80 version 13.1 has no attribute with tag 13");
    assert_eq!(body(&[0x06, 1, 3, 2, 0]), "E0706 81 expected 0 or 1 for a truth value, found 2");
    assert_eq!(body(&[0x06, 1, 3, 1, 0]), "E0705 80 an assumption is neither div_by, same_elements nor bounded");
    assert_eq!(body(&[0x06, 1, 12, 4, 0]), "E0706 81 the assumption bounded has unknown flags, 0x4");
    assert_eq!(body(&[0x26, 1, 1, 0]), "E0707 81 `extract` has 0 operands");
    assert_eq!(body(&[0x32, 0, 0, 1, 1, 0, 0]), "E0707 81 `if` has 1 region, not 2");
    assert_eq!(body(&[0x32, 0, 0, 2, 2, 0, 0]), "E0707 82 a region of `if` has 2 blocks, not 1");
    assert_eq!(body(&[0x32, 0, 0, 2, 0, 0]), "E0707 82 a region of `if` has 0 blocks, not 1");
    assert_eq!(body(&[0x10, 1, 0]), "E0705 80 the value is constant 0 of 0");
}

#[test]
fn bad_constants() {
    let with = |data: &[u8], ty: &[u8]| {
        let body = [&[1, 0, 3, 2, 0, 6, 0x10, 2, 0], RETURN].concat();
        let constant = [&varint(data.len() as u64), data].concat();
        let kernel: &[u8] = &[16, 0, 0];
        let types: [&[u8]; 4] = [&[0], &[3], ty, kernel];
        let sections = [(1, table(4, &[b"k"])), (5, table(4, &types)), (4, table(8, &[&constant])), (2, body)];
        read(&file(V13_1, &sections)).map(|r| print_nvidia(&r.module)).map_err(|d| d[0].message.clone())
    };
    let four = |element: u8| [&[13, element, 1][..], &4u64.to_le_bytes()].concat();
    let (i1, i32) = (four(0), four(1));
    let shown = |r: Result<String, String>| r.unwrap().lines().nth(1).unwrap().trim().to_string();
    assert_eq!(shown(with(&[7, 0, 0, 0], &i32)), "%cst_7_i32 = constant <i32: 7> : tile<4xi32>");
    let listed: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(shown(with(&listed, &i32)), "%cst_i32 = constant <i32: [1, 2, 3, 4]> : tile<4xi32>");
    assert_eq!(shown(with(&[0xff], &i1)), "%true = constant <i1: true> : tile<4xi1>");
    assert_eq!(shown(with(&[0b0101], &i1)), "%cst_i1 = constant <i1: [true, false, true, false]> : tile<4xi1>");
    let message = "the constant has 8 bytes, which is neither one element nor 4 of type i32";
    assert_eq!(with(&listed[..8], &i32).unwrap_err(), message);
}

/// A module written in few bytes takes little memory: a splat of the largest tile, and a large constant that many
/// operations refer to.
#[test]
fn what_is_repeated_is_paid_for() {
    let mib = vec![1u8; 1 << 20];
    let constant = [varint(mib.len() as u64), mib].concat();
    let tile = [&[13, 0, 1][..], &(1u64 << 20).to_le_bytes()].concat();
    let kernel: &[u8] = &[16, 0, 0];
    let body: Vec<u8> = [0x10, 1, 0].repeat(1000);
    let function = [&[1, 0, 2, 2, 0][..], &varint(body.len() as u64), &body].concat();
    let sections =
        [(1, table(4, &[b"k"])), (5, table(4, &[&[1], &tile, kernel])), (4, table(8, &[&constant])), (2, function)];
    let message = wrong(&file(V13_1, &sections));
    assert!(message.starts_with("E0708") && message.contains("do not fit into memory"), "{message}");
}

#[test]
fn nesting_is_bounded() {
    let nested = |n: usize| {
        let mut body = RETURN.to_vec();
        for _ in 0..n {
            // if %arg0 { ... } without an else
            body = [&[0x32, 0, 0, 2, 1, 0, 1][..], &body, &[0]].concat();
        }
        kernel(V13_1, &[], &body)
    };
    assert!(read(&nested(MAX_DEPTH as usize)).is_ok());
    assert!(wrong(&nested(MAX_DEPTH as usize + 1)).contains("nests deeper than 200 levels"));
    assert!(wrong(&nested(100_000)).contains("nests deeper than 200 levels"));
    // Arrays of arrays in place of an assumption.
    let arrays = [&[0x06, 1][..], &[6, 1].repeat(100_000), &[0, 0], RETURN].concat();
    assert!(wrong(&kernel(V13_1, &[], &arrays)).contains("nests deeper than 200 levels"));
}

#[test]
fn locations_that_go_round_in_circles() {
    let debug = |items: &[&[u8]]| {
        let mut section = varint(1);
        section.resize(4, 0xCB);
        section.extend(0u32.to_le_bytes());
        section.extend(varint(2));
        section.resize(16, 0xCB);
        section.extend([1u64, 1].iter().flat_map(|n| n.to_le_bytes()));
        section.extend(table(4, items));
        let body = [&[1, 0, 0, 2, 1, 3][..], RETURN].concat();
        let sections = [(1, table(4, &[b"k"])), (5, table(4, &[&[16, 0, 0]])), (3, section), (2, body)];
        wrong(&file(V13_1, &sections))
    };
    assert!(debug(&[&[6, 1, 1]]).ends_with("location 1 refers to itself"));
    assert!(debug(&[&[6, 2, 2], &[6, 1, 0]]).ends_with("location 1 refers to itself"));
    assert!(debug(&[&[2, 0, 0]]).ends_with("1 is the number of a scope, not of a location"));
    assert!(debug(&[&[4, 2, 0, 1, 1], &[6, 0, 0]]).ends_with("2 is the number of a location, not of a scope"));
    assert!(debug(&[&[6, 3, 0], &[0]]).ends_with("there is no location 3; there are 2"));
    assert!(debug(&[&[9]]).ends_with("unknown location tag 9"));
    // A chain of calls, each inlined in the next.
    let chain: Vec<Vec<u8>> = (0..1000u64).map(|i| [&[6, 0][..], &varint(i + 2)].concat()).collect();
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    assert!(debug(&chain).contains("locations nest deeper than 200 levels"));
    // Each location twice in the next: few bytes, a tree of 2^50.
    let mut tree: Vec<Vec<u8>> = (0..50u8).map(|i| vec![6, i + 2, i + 2]).collect();
    tree.push(vec![6, 0, 0]);
    let tree: Vec<&[u8]> = tree.iter().map(Vec::as_slice).collect();
    assert!(debug(&tree).contains("made of too many others"));
}

fn corpus(version: &str, name: &str) -> Vec<u8> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bytecode/corpus");
    let path: PathBuf = here.join(version).join(name).with_extension("tileirbc");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reading and verifying never panics, whatever the bytes.
fn survives(bytes: &[u8]) {
    match read(bytes) {
        Ok(read) => drop(crate::cuda_tile::verify(&read.module)),
        Err(found) => assert!(found.iter().all(|d| d.span.is_some())),
    }
}

/// Blanks before the colon included.
#[test]
fn operations_on_multicast_memory() {
    let text = text(&corpus("13.5", "multimem"));
    let view = "partition_view<tile=(8), tensor_view<64xf32, strides=[1], #cuda_tile.ptr_attr<multicast>>>";
    for line in [
        format!(
            "multimem_load_reduce_view_tko relaxed device %pview[%arg2] token = %0  : {view}, tile<i32>, token -> tile<8xf32>, token"
        ),
        format!(
            "multimem_load_reduce_view_tko weak %pview[%arg2] inbounds = [true] : {view}, tile<i32> -> tile<8xf32>, token"
        ),
        format!(
            "%1 = multimem_reduce_view_tko relaxed device %pview, %cst_1_f32[%arg2] token = %0  : {view}, tile<8xf32>, tile<i32>, token -> token"
        ),
        format!(
            "%2 = multimem_store_view_tko weak %pview, %cst_1_f32[%arg2]  : {view}, tile<8xf32>, tile<i32> -> token"
        ),
        "%cst_1_i32[%arg2]  attributes {reduction = #cuda_tile.multimem_reduction_kind<umax>} : ".into(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
}

#[test]
fn no_file_that_is_cut_short_is_read() {
    for (version, name) in [("13.1", "control"), ("13.4", "hinted"), ("13.5", "locations")] {
        let bytes = corpus(version, name);
        assert!(read(&bytes).is_ok(), "{version} {name}");
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{version} {name} cut at {len} is read");
        }
    }
}

#[test]
fn files_with_one_wrong_bit() {
    for (version, name) in [("13.1", "control"), ("13.4", "hinted"), ("13.5", "locations")] {
        let mut bytes = corpus(version, name);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            survives(&bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
