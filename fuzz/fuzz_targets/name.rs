#![no_main]

#[path = "../../crates/girih-shim/src/mangle.rs"]
#[allow(dead_code)]
mod mangle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(symbol) = std::str::from_utf8(bytes) {
        let _ = mangle::parse(symbol);
    }
});
