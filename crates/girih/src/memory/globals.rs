//! The globals of a loaded program: one copy each, from the first launch that uses them to the program's end.

use std::collections::BTreeMap;

use girih_compiler::loops::ir::Global;

use crate::error::{Error, Result};
use crate::memory::buffer::storage_bytes;
use crate::memory::pages::Pages;
use crate::memory::regions::RealMemory;
use crate::system::sync::Brief;
use girih_compiler::num::values;

#[derive(Debug, Default)]
pub struct Globals {
    /// By name: the memory, where in it the global starts, and its length in bytes.
    all: Brief<BTreeMap<String, (Pages, usize, u64)>>,
}

impl Globals {
    /// Where a global lives; filled with its initial value when it is first asked for.
    pub fn address(&self, global: &Global) -> Result<*mut u8> {
        let mut all = self.all.lock();
        if let Some((pages, at, _)) = all.get(&global.name) {
            return Ok(pages.as_ptr().wrapping_add(*at));
        }
        let too_large = || Error::argument(format!("there is no memory for the global `{}`", global.name));
        let bytes = storage_bytes(global.dtype, global.bits.len() as u64).ok_or_else(too_large)?;
        let align = usize::try_from(global.align.max(1)).map_err(|_| too_large())?.next_power_of_two();
        let size = usize::try_from(bytes).ok().and_then(|b| b.checked_add(align)).ok_or_else(too_large)?;
        let mut pages = Pages::zeroed(size).ok_or_else(too_large)?;
        let at = pages.as_ptr().align_offset(align).min(align);
        fill(&mut pages, at, global);
        let start = pages.as_ptr().wrapping_add(at);
        // The kernel reaches the memory by its number.
        start.expose_provenance();
        all.insert(global.name.clone(), (pages, at, bytes));
        Ok(start)
    }

    /// Gives a global that is in use its initial value again.
    pub fn reset(&self, global: &Global) {
        let mut all = self.all.lock();
        if let Some((pages, at, _)) = all.get_mut(&global.name) {
            fill(pages, *at, global);
        }
    }

    /// Registers every global in use.
    pub fn register(&self, memory: &mut RealMemory) {
        for (name, (pages, at, bytes)) in &*self.all.lock() {
            // SAFETY: globals live as long as the program, which outlives its launches.
            unsafe { memory.register(&format!("global {name}"), pages.as_ptr().wrapping_add(*at), *bytes) };
        }
    }
}

fn fill(pages: &mut Pages, at: usize, global: &Global) {
    let memory = pages.bytes_mut().get_mut(at..).unwrap_or_default();
    for (i, &bits) in global.bits.iter().enumerate() {
        values::write(global.dtype, memory, i as u64, bits);
    }
}
