#![no_main]

#[path = "../names.rs"]
#[allow(dead_code)]
mod names;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    names::emit(bytes);
});
