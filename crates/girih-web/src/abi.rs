//! The functions that a page calls. Numbers cross the border, texts lie in the module's memory.
//!
//! ```js
//! const bytes = new TextEncoder().encode(question);
//! const room = reserve(bytes.length);
//! new Uint8Array(memory.buffer, room, bytes.length).set(bytes);
//! const at = answer();
//! const length = new DataView(memory.buffer).getUint32(at, true);
//! const text = new TextDecoder().decode(new Uint8Array(memory.buffer, at + 4, length));
//! ```

use std::sync::Mutex;

/// The question, and then the answer behind its length.
static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for a question of `length` bytes, and gives its address.
#[unsafe(no_mangle)]
extern "C" fn reserve(length: usize) -> *mut u8 {
    let Ok(mut text) = TEXT.lock() else { return std::ptr::null_mut() };
    *text = vec![0; length];
    text.as_mut_ptr()
}

/// Answers the question that lies there, and gives the address of the answer: its length in four bytes, and its text. It stays until the
/// next question.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    let Ok(mut text) = TEXT.lock() else { return std::ptr::null() };
    let answer = crate::answer(&String::from_utf8_lossy(&text));
    *text = [&(answer.len() as u32).to_le_bytes(), answer.as_bytes()].concat();
    text.as_ptr()
}
