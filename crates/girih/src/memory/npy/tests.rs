use super::*;

fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend([version, 0]);
    if version == 1 {
        out.extend((header.len() as u16).to_le_bytes());
    } else {
        out.extend((header.len() as u32).to_le_bytes());
    }
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

fn parse(bytes: &[u8]) -> std::result::Result<Buffer, String> {
    read_from(&mut &bytes[..], bytes.len() as u64)
}

#[test]
fn what_is_written_is_read_back() {
    let dir = std::env::temp_dir().join(format!("girih-npy-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for (dtype, shape) in [
        (DType::F32, vec![2, 3]),
        (DType::F64, vec![]),
        (DType::I64, vec![5]),
        (DType::F16, vec![1, 2, 3, 4]),
        (DType::I8, vec![0, 3]),
        (DType::I1, vec![3]),
    ] {
        let mut buffer = Buffer::zeroed(dtype, &shape).unwrap();
        for (i, b) in buffer.bytes_mut().iter_mut().enumerate() {
            *b = if dtype == DType::I1 { (i % 2) as u8 } else { i as u8 };
        }
        let path = dir.join(format!("{dtype}.npy"));
        write(&path, &buffer).unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!((whole.len() - buffer.bytes().len()) % 64, 0);
        let back = read(&path).unwrap();
        assert_eq!((back.dtype(), back.shape(), back.bytes()), (dtype, &shape[..], buffer.bytes()));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_header_as_numpy_writes_it() {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }             \n";
    let data: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    for version in 1..=3 {
        let b = parse(&file(version, header, &data)).unwrap();
        assert_eq!((b.dtype(), b.shape(), b.bytes()), (DType::F32, &[3][..], &data[..]));
    }
}

#[test]
fn fortran_order_and_foreign_byte_order_are_converted() {
    // Column-major [[1, 2, 3], [4, 5, 6]], big endian.
    let data: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|x| x.to_be_bytes()).collect();
    let b = parse(&file(1, "{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}", &data)).unwrap();
    let want: Vec<u8> = [1i16, 2, 3, 4, 5, 6].iter().flat_map(|x| x.to_ne_bytes()).collect();
    assert_eq!((b.dtype(), b.bytes()), (DType::I16, &want[..]));
}

#[test]
fn types_map_to_signless_ones() {
    for (descr, dtype) in [
        ("|b1", DType::I1),
        ("|u1", DType::I8),
        ("<u2", DType::I16),
        (">u4", DType::I32),
        ("<i8", DType::I64),
        ("<f2", DType::F16),
        ("<f8", DType::F64),
    ] {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
        assert_eq!(parse(&file(1, &header, &[1; 8])).unwrap().dtype(), dtype);
    }
    let bools = parse(&file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", &[0, 255, 2])).unwrap();
    assert_eq!(bools.bytes(), [0, 1, 1]);
}

#[test]
fn hostile_headers_give_errors() {
    let ok = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "not a .npy"),
        (b"\x93NUMPY".to_vec(), "not a .npy"),
        (b"PK\x03\x04aaaaaaaaaaaaaaaa".to_vec(), "not a .npy"),
        (file(9, ok, &[0; 8]), "version 9"),
        (file(1, ok, &[0; 7]), "7 bytes"),
        (file(1, "", &[]), "'{'"),
        (file(1, "{'descr': '<f4'", &[]), "'}'"),
        (file(1, "{'descr': '<c8', 'fortran_order': False, 'shape': ()}", &[0; 8]), "<c8"),
        (file(1, "{'descr': '', 'fortran_order': False, 'shape': ()}", &[0; 8]), "not supported"),
        (file(1, "{'descr': 'é4', 'fortran_order': False, 'shape': ()}", &[0; 8]), "not supported"),
        (file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", &[0; 8]), "structured"),
        (file(1, "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", &[0; 8]), "True or False"),
        (file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", &[0; 8]), "bad shape"),
        (file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", &[]), "bad shape"),
        (file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", &[]), "too large"),
        (file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}", &[]), "too large"),
        (file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", &[]), "needs 4000000000"),
        (file(1, "{'descr': '<f4', 'fortran_order': False}", &[]), "no 'shape'"),
        (file(1, "{'evil': '<f4'}", &[]), "unknown key"),
        (file(1, &format!("{ok} x"), &[0; 8]), "after its end"),
        (file(1, &format!("{{'shape': ({})}}", "1,".repeat(100)), &[]), "dimensions"),
    ];
    for (bytes, want) in cases {
        let got = parse(&bytes).unwrap_err();
        assert!(got.contains(want), "{got:?} lacks {want:?}");
    }
    let mut huge = MAGIC.to_vec();
    huge.extend([2, 0]);
    huge.extend(u32::MAX.to_le_bytes());
    assert!(parse(&huge).unwrap_err().contains("too long"));
    // Every truncation and every single-byte change gives an array or an error.
    let whole = file(1, ok, &[0; 8]);
    for cut in 0..whole.len() {
        assert!(parse(&whole[..cut]).is_err());
    }
    for at in 0..whole.len() {
        for byte in [0, b'(', b'\'', b'9', 255] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let _ = parse(&changed);
        }
    }
}
