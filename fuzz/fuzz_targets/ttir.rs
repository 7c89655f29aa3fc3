#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code)]
mod checks;
#[path = "../memory.rs"]
mod memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    checks::ttir(bytes);
});
