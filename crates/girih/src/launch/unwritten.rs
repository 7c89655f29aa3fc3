//! Which elements of a checked launch's outputs no block wrote.
//!
//! In: the arrays of a launch, and the kernel's accesses to them. While it runs, checked code, or [`Noting`] below an interpreter,
//! notes each byte that is written of an array that is only written. Out: a warning for each of these that has elements without
//! a note.

use girih_compiler::base::memory::{Fault, Memory};
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::loops::ir::{Kernel, SiteId, Stmt};
use girih_compiler::loops::launch_facts::Traffic;
use girih_compiler::loops::walk;

use crate::memory::args::{Bound, Param, ParamKind};

/// Notes for more bytes than this are not taken.
const MOST: u64 = 1 << 30;

/// A byte for each byte of an output, by parameter: 0 until it is written.
pub(super) struct Notes(Vec<Option<Vec<u8>>>);

impl Notes {
    /// For the parameters whose memory is an array that the kernel fills: nothing of it is read, and some stores are certainly
    /// of it. An array that an address chosen at run time may lead to can be left alone on purpose.
    pub fn of(bound: &Bound<'_>, traffic: &Traffic) -> Notes {
        let whole = |i: usize| bound.whole.get(i) == Some(&true);
        let output = |i: usize| traffic.fills.get(i) == Some(&true);
        // Where parameters share memory, a write is noted for one of them only.
        let alone = !bound.overlap();
        let one = |(i, extent): (usize, &Option<_>)| {
            let extent: &crate::memory::args::Extent = extent.as_ref()?;
            (alone && whole(i) && output(i) && extent.bytes <= MOST).then(|| vec![0; extent.bytes as usize])
        };
        Notes(bound.extents.iter().enumerate().map(one).collect())
    }

    /// Writes where the notes are behind the regions of the parameters.
    pub fn enter(&mut self, table: &mut [i64]) {
        let regions = 2 * self.0.len();
        for (cell, notes) in table.iter_mut().skip(regions).zip(&mut self.0) {
            *cell = notes.as_mut().map_or(0, |notes| notes.as_mut_ptr().expose_provenance() as i64);
        }
    }

    /// A warning for each output with elements that were not written, at the store that writes the others.
    pub fn warnings(&self, bound: &Bound<'_>, params: &[Param], kernel: &Kernel) -> Vec<Diagnostic> {
        let noted = params.iter().zip(&self.0).enumerate();
        let missing = |(i, (param, notes)): (usize, (&Param, &Option<Vec<u8>>))| {
            let warning = missing(i, param, notes.as_ref()?, bound)?;
            let place = store_to(kernel, i).and_then(|site| kernel.sites.get(site));
            Some(match place {
                Some(site) => Diagnostic { span: site.span, ..warning }.from(site.frames.clone()),
                None => warning,
            })
        };
        noted.filter_map(missing).collect()
    }
}

/// The memory of an interpreter that takes notes; `starts` are the addresses of the noted arrays, in order of the parameters.
pub(super) struct Noting<'a, M> {
    pub memory: &'a mut M,
    pub notes: &'a mut Notes,
    pub starts: Vec<Option<u64>>,
}

impl<M: Memory> Memory for Noting<'_, M> {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(addr, out)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        for (notes, start) in self.notes.0.iter_mut().zip(&self.starts) {
            let (Some(notes), Some(start)) = (notes, start) else { continue };
            let Some(from) = addr.checked_sub(*start).and_then(|n| usize::try_from(n).ok()) else { continue };
            if let Some(noted) = notes.get_mut(from..from.saturating_add(bytes.len())) {
                noted.fill(1);
            }
        }
        self.memory.write(addr, bytes)
    }

    fn allocate(&mut self, len: u64, align: u64) -> u64 {
        self.memory.allocate(len, align)
    }

    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        self.memory.region(addr)
    }
}

/// The first store to the memory of a parameter.
fn store_to(kernel: &Kernel, param: usize) -> Option<SiteId> {
    let base = kernel.params.get(param)?.val;
    let mut found = None;
    walk::visit(&kernel.body, &mut |s| {
        if let Stmt::Store { mem, site, .. } = s
            && mem.base == base
        {
            found.get_or_insert(*site);
        }
    });
    found
}

fn missing(i: usize, param: &Param, notes: &[u8], bound: &Bound<'_>) -> Option<Diagnostic> {
    let ParamKind::Pointer(dtype) = param.kind else { return None };
    let size = usize::try_from(dtype.bytes()).ok().filter(|&n| n > 0 && dtype.bits() >= 8)?;
    let first_index = bound.indices(i, dtype)?.start;
    let elements = notes.chunks_exact(size);
    let of = elements.len();
    let unwritten: Vec<usize> =
        elements.enumerate().filter(|(_, bytes)| bytes.contains(&0)).map(|(at, _)| at).collect();
    let first = first_index + *unwritten.first()? as i128;
    let text = format!(
        "{} of the {of} elements of `{}` were written by no block; the first is at index {first}",
        unwritten.len(),
        param.name
    );
    let help = "the grid must cover the whole output: `cdiv(n, BLOCK)` blocks for n elements";
    Some(Diagnostic::warning(Code::NotWritten, text).help(help))
}
