//! Asynchronous copies as PTX in small functions.
//!
//! ```text
//! copy async s[tx*4] = a[tx*4] bytes 16                 -->   copy_async_16(&s[tx * 4], &a[tx * 4]);
//! copy async s[tx] = a[tx] bytes 4 where tx < n         -->   copy_async_4_or_zero(&s[tx], &a[tx], tx < n);
//! commit                                                -->   copy_async_commit();
//! wait groups 1                                         -->   copy_async_wait_1();
//! ```
//! Copies of 16 bytes bypass L1 (`.cg`), which smaller copies cannot. Every function counts as changing memory, so no
//! access is moved across it.

use super::stmt::Printer;
use crate::index::Mask;
use crate::kernel::ir::*;

impl Printer<'_> {
    pub(super) fn copy(&mut self, to: &Address, from: &Address, bytes: u32, mask: &Mask) {
        let (to, from) = (self.target(to).address, self.target(from).address);
        let cache = if bytes == 16 { "cg" } else { "ca" };
        let places = "\"r\"((unsigned int)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from))";
        let instruction = format!("cp.async.{cache}.shared.global [%0], [%1], {bytes}");
        let (name, param, operand, source, on) = match mask.is_always() {
            true => (format!("copy_async_{bytes}"), "", "", String::new(), String::new()),
            false => {
                let source = format!(", \"r\"(on ? {bytes} : 0)");
                (format!("copy_async_{bytes}_or_zero"), ", bool on", ", %2", source, format!(", {}", self.mask(mask)))
            }
        };
        let body = format!("  asm volatile(\"{instruction}{operand};\" : : {places}{source} : \"memory\");\n");
        self.support.block(&name, &format!("INLINE void {name}(void *to, const void *from{param}) {{\n{body}}}\n"));
        self.out.line(&format!("{name}({to}, {from}{on});"));
    }

    pub(super) fn commit(&mut self) {
        self.bare("copy_async_commit", "cp.async.commit_group");
    }

    pub(super) fn wait_groups(&mut self, left: u32) {
        self.bare(&format!("copy_async_wait_{left}"), &format!("cp.async.wait_group {left}"));
    }

    pub(super) fn barrier_first(&mut self, count: u32) {
        let body = "  asm volatile(\"bar.sync 1, %0;\" : : \"r\"(count) : \"memory\");\n";
        self.support.block("barrier_first", &format!("INLINE void barrier_first(int count) {{\n{body}}}\n"));
        self.out.line(&format!("barrier_first({count});"));
    }

    /// An instruction without operands.
    pub(super) fn bare(&mut self, name: &str, instruction: &str) {
        let body = format!("  asm volatile(\"{instruction};\" : : : \"memory\");\n");
        self.support.block(name, &format!("INLINE void {name}() {{\n{body}}}\n"));
        self.out.line(&format!("{name}();"));
    }
}
