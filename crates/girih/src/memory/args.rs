//! The arguments of a launch, and how they are fitted to the kernel's parameters.

use std::marker::PhantomData;
use std::ops::Range;

use girih_compiler::num::DType;
pub use girih_compiler::spec::{Param, ParamKind};

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, Element, storage_bytes};
use crate::memory::regions::RealMemory;
use girih_compiler::num::values;

/// One argument of a launch.
///
/// ```
/// # use girih::Arg;
/// let mut out = vec![0f32; 128];
/// let args = [Arg::from(&mut out[..]), Arg::from(2.5f32), Arg::same_as(0)];
/// ```
#[derive(Debug)]
pub struct Arg<'a>(pub(crate) Kind<'a>);

#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Scalar { dtype: DType, bits: u64 },
    Memory { dtype: DType, start: *mut u8, bytes: u64, writable: bool, life: PhantomData<&'a mut [u8]> },
    Same(usize),
    Part { of: usize, start: u64, bytes: u64 },
    Pointers(Vec<usize>),
}

impl<'a> Arg<'a> {
    /// A scalar given by its bits.
    pub fn scalar(dtype: DType, bits: u64) -> Arg<'static> {
        Arg(Kind::Scalar { dtype, bits: bits & dtype.mask() })
    }
    /// The buffer of another argument, by its position, once more.
    pub fn same_as(position: usize) -> Arg<'static> {
        Arg(Kind::Same(position))
    }
    /// The bytes `range` of another argument's buffer: a slice that overlaps it, and may start anywhere.
    pub fn part_of(position: usize, range: std::ops::Range<u64>) -> Arg<'static> {
        Arg(Kind::Part { of: position, start: range.start, bytes: range.end.saturating_sub(range.start) })
    }
    /// A table of the addresses of other arguments' buffers, for a parameter of type `ptr<i64>`.
    pub fn pointers(positions: &[usize]) -> Arg<'static> {
        Arg(Kind::Pointers(positions.to_vec()))
    }
    /// Memory by its address, for callers that have no slice: other languages, overlapping ranges.
    ///
    /// # Safety
    /// `bytes` bytes from `start` on must be readable and writable for the argument's life, with no Rust reference to
    /// them in use while a launch runs.
    pub unsafe fn from_raw(dtype: DType, start: *mut u8, bytes: u64) -> Arg<'static> {
        Arg(Kind::Memory { dtype, start, bytes, writable: true, life: PhantomData })
    }
    /// Elements of any type by their storage: bf16 in `u16`s, f8 in `u8`s.
    pub fn bits_of<T: Element>(dtype: DType, elements: &'a mut [T]) -> Arg<'a> {
        let bytes = size_of_val(elements) as u64;
        Arg(Kind::Memory { dtype, start: elements.as_mut_ptr().cast(), bytes, writable: true, life: PhantomData })
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Arg<'a> {
    fn from(elements: &'a mut [T]) -> Arg<'a> {
        Arg::bits_of(T::DTYPE, elements)
    }
}

/// Elements the kernel only reads; a launch of a kernel that may write them is refused.
impl<'a, T: Element> From<&'a [T]> for Arg<'a> {
    fn from(elements: &'a [T]) -> Arg<'a> {
        let (start, bytes) = (elements.as_ptr().cast_mut().cast(), size_of_val(elements) as u64);
        Arg(Kind::Memory { dtype: T::DTYPE, start, bytes, writable: false, life: PhantomData })
    }
}

impl<'a> From<&'a mut Buffer> for Arg<'a> {
    fn from(buffer: &'a mut Buffer) -> Arg<'a> {
        let (dtype, bytes) = (buffer.dtype(), buffer.bytes().len() as u64);
        Arg(Kind::Memory { dtype, start: buffer.as_ptr(), bytes, writable: true, life: PhantomData })
    }
}

impl<T: Element> From<T> for Arg<'static> {
    fn from(value: T) -> Arg<'static> {
        Arg::scalar(T::DTYPE, value.bits())
    }
}

impl From<bool> for Arg<'static> {
    fn from(value: bool) -> Arg<'static> {
        Arg::scalar(DType::I1, u64::from(value))
    }
}

/// The memory behind a pointer parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub start: u64,
    pub bytes: u64,
    pub writable: bool,
}

/// Memory that a kernel reaches through addresses it finds in memory: an element of a list of arrays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The name for messages.
    pub name: String,
    pub start: u64,
    pub bytes: u64,
}

/// A launch's arguments as a driver has them: bits, and the known facts about the memory behind addresses.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RawArgs {
    /// One per parameter: the bits of a scalar, or an address.
    pub slots: Vec<u64>,
    /// One per parameter: how many bytes from its address on are the kernel's to use; `None` for scalars.
    pub bytes: Vec<Option<u64>>,
    /// One per parameter, or none at all: how many bytes before its address are the kernel's too, where strides are negative.
    pub before: Vec<u64>,
    /// One per parameter, or none at all: whether these bytes are the elements of an array and nothing else.
    pub whole: Vec<bool>,
    pub reached: Vec<Reached>,
    /// Other memory that checks let the kernel use, should it come by an address in it.
    pub live: Vec<Reached>,
    /// The stream of the driver on which a GPU runs the kernel, where some of the memory is the GPU's; 0 is the device's own. Nobody
    /// waits for the kernel then.
    pub stream: Option<u64>,
}

/// Fits raw arguments to parameters.
pub fn bind_raw(entry: &str, params: &[Param], args: RawArgs) -> Result<Bound<'static>> {
    let RawArgs { mut slots, bytes, before, whole, reached, live, stream } = args;
    if slots.len() != params.len() || bytes.len() != params.len() {
        return Err(Error::argument(format!(
            "`{entry}` takes {} arguments, but {} were given",
            params.len(),
            slots.len()
        )));
    }
    let mut extents = Vec::with_capacity(params.len());
    for (i, (param, (slot, bytes))) in params.iter().zip(slots.iter_mut().zip(bytes)).enumerate() {
        let before = before.get(i).copied().unwrap_or(0);
        extents.push(match param.kind {
            ParamKind::Scalar(dtype) => {
                *slot &= dtype.mask();
                None
            }
            ParamKind::Pointer(_) => Some(Extent {
                start: slot.saturating_sub(before),
                bytes: bytes.unwrap_or(0).saturating_add(before),
                writable: true,
            }),
        });
    }
    let owner = (0..params.len()).collect();
    Ok(Bound { slots, extents, owner, whole, reached, live, stream, _tables: Vec::new(), life: PhantomData })
}

/// Arguments that fit their parameters. The memory they stand for stays borrowed while this lives.
#[derive(Debug)]
pub struct Bound<'a> {
    pub slots: Vec<u64>,
    /// One per parameter, which begin at or before its address; `None` for scalars.
    pub extents: Vec<Option<Extent>>,
    /// Position of the argument whose buffer a parameter shares, itself unless it was `same_as`.
    pub owner: Vec<usize>,
    /// One per parameter, or none at all: whether its memory is the elements of an array and nothing else.
    pub whole: Vec<bool>,
    /// Memory that is reached through addresses in memory.
    pub reached: Vec<Reached>,
    /// Other memory that checks allow.
    pub live: Vec<Reached>,
    /// The stream of [`RawArgs`].
    pub stream: Option<u64>,
    /// Tables of pointers, kept alive.
    _tables: Vec<Buffer>,
    life: PhantomData<&'a mut [u8]>,
}

/// Fits arguments to parameters: count, kinds, element types, references between them.
pub fn bind<'a>(entry: &str, params: &[Param], args: &'a mut [Arg<'_>]) -> Result<Bound<'a>> {
    if args.len() != params.len() {
        let names: Vec<String> = params.iter().map(|p| format!("{}: {}", p.name, p.kind)).collect();
        return Err(Error::argument(format!(
            "`{entry}` takes {} argument{} ({}), but {} {} given",
            params.len(),
            if params.len() == 1 { "" } else { "s" },
            names.join(", "),
            args.len(),
            if args.len() == 1 { "was" } else { "were" },
        )));
    }
    let owner = (0..args.len()).map(|i| owner(params, args, i)).collect::<Result<Vec<usize>>>()?;
    let mut slots = Vec::with_capacity(args.len());
    let mut extents = Vec::with_capacity(args.len());
    let mut tables = Vec::new();
    for (param, &owner) in params.iter().zip(&owner) {
        let wrong =
            |given: String| Error::argument(format!("argument `{}` is {}, not {given}", param.name, param.kind));
        let (slot, extent) = match (&args[owner].0, param.kind) {
            (Kind::Scalar { dtype, bits }, ParamKind::Scalar(want)) if *dtype == want => (*bits, None),
            (Kind::Scalar { dtype, bits }, _) => {
                return Err(wrong(format!("the {dtype} {}", values::text(*dtype, *bits))));
            }
            (Kind::Memory { dtype, start, bytes, writable, .. }, ParamKind::Pointer(want)) => {
                if !stored_as(want, *dtype) {
                    return Err(wrong(format!("a buffer of {dtype}")));
                }
                let start = start.expose_provenance() as u64;
                (start, Some(Extent { start, bytes: *bytes, writable: *writable }))
            }
            (Kind::Part { of, start, bytes }, ParamKind::Pointer(_)) => {
                let outside = || {
                    let end = start.saturating_add(*bytes);
                    Error::argument(format!("argument `{}` is not a part {start}..{end} of a buffer", param.name))
                };
                match args.get(*of).map(|a| &a.0) {
                    Some(Kind::Memory { start: whole, bytes: all, writable, .. })
                        if start.checked_add(*bytes).is_some_and(|end| end <= *all) =>
                    {
                        let start = whole.expose_provenance() as u64 + start;
                        (start, Some(Extent { start, bytes: *bytes, writable: *writable }))
                    }
                    _ => return Err(outside()),
                }
            }
            (Kind::Part { .. }, ParamKind::Scalar(_)) => return Err(wrong("part of a buffer".into())),
            (Kind::Memory { dtype, .. }, ParamKind::Scalar(_)) => return Err(wrong(format!("a buffer of {dtype}"))),
            (Kind::Pointers(of), ParamKind::Pointer(DType::I64)) => {
                let mut table = Buffer::zeroed(DType::I64, &[of.len() as u64])?;
                for (i, &position) in of.iter().enumerate() {
                    match args.get(position).map(|a| &a.0) {
                        Some(Kind::Memory { start, .. }) => table.set(i as u64, start.expose_provenance() as u64),
                        _ => {
                            return Err(Error::argument(format!(
                                "the table of pointers `{}` names an argument that is not a buffer",
                                param.name
                            )));
                        }
                    }
                }
                let extent = Extent {
                    start: table.as_ptr().expose_provenance() as u64,
                    bytes: table.bytes().len() as u64,
                    writable: true,
                };
                tables.push(table);
                (extent.start, Some(extent))
            }
            (Kind::Pointers(_), _) => return Err(wrong("a table of pointers (those are ptr<i64>)".into())),
            (Kind::Same(_), _) => return Err(Error::Internal("an argument refers to a reference".into())),
        };
        slots.push(slot);
        extents.push(extent);
    }
    Ok(Bound {
        slots,
        extents,
        owner,
        whole: vec![true; params.len()],
        reached: Vec::new(),
        live: Vec::new(),
        stream: None,
        _tables: tables,
        life: PhantomData,
    })
}

/// The argument that argument `i` stands for.
fn owner(params: &[Param], args: &[Arg<'_>], i: usize) -> Result<usize> {
    let mut at = i;
    for _ in 0..=args.len() {
        match args.get(at).map(|a| &a.0) {
            Some(Kind::Same(next)) => at = *next,
            Some(_) => return Ok(at),
            None => break,
        }
    }
    Err(Error::argument(format!("argument `{}` does not refer to a buffer", params[i].name)))
}

/// Returns true if a buffer of `have` can stand for elements of `want`: the same type, or the bit patterns of a type
/// that neither NumPy nor Rust has.
fn stored_as(want: DType, have: DType) -> bool {
    let carrier = match want {
        DType::BF16 => DType::I16,
        DType::TF32 => DType::F32,
        DType::I1 | DType::I4 | DType::F4E2M1FN => DType::I8,
        _ if want.is_float() && want.bits() == 8 => DType::I8,
        _ => want,
    };
    have == want || have == carrier
}

impl Bound<'_> {
    /// Returns true if two pointer parameters' ranges share a byte.
    pub fn overlap(&self) -> bool {
        self.conflict(&vec![true; self.extents.len()])
    }

    /// Returns true if two ranges share a byte and at least one of them is written; `writes` is per parameter.
    pub fn conflict(&self, writes: &[bool]) -> bool {
        // Memory reached through pointers in memory counts as written if any parameter is.
        let any = writes.contains(&true);
        let direct = self.extents.iter().zip(writes).filter_map(|(e, &w)| e.map(|e| (e.start, e.bytes, w)));
        let reached = self.reached.iter().map(|r| (r.start, r.bytes, any));
        let mut ranges: Vec<(u64, u64, bool)> = direct.chain(reached).filter(|r| r.1 > 0).collect();
        ranges.sort_unstable();
        // Where the ranges so far end, and those of them that are written.
        let (mut end, mut written_end) = (0, 0);
        ranges.into_iter().any(|(start, bytes, written)| {
            let found = start < if written { end } else { written_end };
            let last = start.saturating_add(bytes);
            end = end.max(last);
            written_end = if written { written_end.max(last) } else { written_end };
            found
        })
    }

    /// The lowest and one past the highest byte address per parameter, as the ABI wants them, and behind them a 0 for each:
    /// no notes are taken of writes there.
    pub fn extent_table(&self) -> Vec<i64> {
        let range = |e: &Extent| [e.start as i64, e.start.saturating_add(e.bytes) as i64];
        let regions = self.extents.iter().flat_map(|e| e.as_ref().map_or([0, 0], range));
        regions.chain(self.extents.iter().map(|_| 0)).collect()
    }

    /// The evaluator's view of the same memory.
    pub fn memory(&self, params: &[Param]) -> RealMemory {
        let mut memory = RealMemory::new();
        for (i, (param, extent)) in params.iter().zip(&self.extents).enumerate() {
            if let Some(e) = extent
                && self.owner.get(i) == Some(&i)
            {
                // SAFETY: the memory is borrowed for the life of `self`, mutably unless a launch has shown that the
                // kernel only reads it; the caller uses the result no longer than `self`.
                unsafe {
                    memory.register(&param.name, std::ptr::with_exposed_provenance_mut(e.start as usize), e.bytes)
                };
            }
        }
        for r in self.reached.iter().chain(&self.live) {
            // SAFETY: as above; `Kernel::launch_raw` has its caller's word for it.
            unsafe { memory.register(&r.name, std::ptr::with_exposed_provenance_mut(r.start as usize), r.bytes) };
        }
        memory
    }

    /// How many elements of `dtype` the memory of parameter `i` holds.
    pub fn elements(&self, i: usize, dtype: DType) -> Option<u64> {
        let bytes = self.extents.get(i)?.as_ref()?.bytes;
        if dtype.bits() == 4 { bytes.checked_mul(2) } else { storage_bytes(dtype, 1).map(|one| bytes / one.max(1)) }
    }

    /// The indices, counted from the address that the kernel gets, at which parameter `i` holds elements of `dtype`: some are
    /// negative where the address is not that of the lowest element.
    pub fn indices(&self, i: usize, dtype: DType) -> Option<Range<i128>> {
        let before = self.slots.get(i)?.saturating_sub(self.extents.get(i)?.as_ref()?.start);
        let first = -i128::from(before / dtype.bytes().max(1));
        Some(first..first + i128::from(self.elements(i, dtype)?))
    }
}

/// How many elements have these indices, in words.
pub fn count_of(indices: &Range<i128>) -> String {
    let count = indices.end - indices.start;
    match indices.start {
        0 => format!("{count} elements"),
        first => format!("{count} elements, {first} to {}", indices.end - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, kind: ParamKind) -> Param {
        Param { name: name.into(), kind }
    }
    fn abn() -> Vec<Param> {
        vec![
            param("A", ParamKind::Pointer(DType::F32)),
            param("B", ParamKind::Pointer(DType::F32)),
            param("n", ParamKind::Scalar(DType::I32)),
        ]
    }
    fn message(args: &mut [Arg]) -> String {
        bind("k", &abn(), args).unwrap_err().to_string()
    }

    #[test]
    fn what_fits_is_bound() {
        let (mut a, b) = (vec![0f32; 10], [1f32; 4]);
        let (pa, pb) = (a.as_ptr() as u64, b.as_ptr() as u64);
        let mut args = [Arg::from(&mut a[..]), Arg::from(&b[..]), Arg::from(-1i32)];
        let bound = bind("k", &abn(), &mut args).unwrap();
        assert_eq!(bound.slots, [pa, pb, 0xffff_ffff]);
        assert_eq!(bound.extents[1], Some(Extent { start: pb, bytes: 16, writable: false }));
        assert_eq!(bound.extent_table()[..2], [pa as i64, pa as i64 + 40]);
        assert!(!bound.overlap());
        assert_eq!(bound.elements(0, DType::F32), Some(10));
    }

    #[test]
    fn the_same_buffer_twice_overlaps() {
        let mut a = [0f32; 10];
        let mut args = [Arg::from(&mut a[..]), Arg::same_as(0), Arg::from(1i32)];
        assert!(bind("k", &abn(), &mut args).unwrap().overlap());
    }

    #[test]
    fn only_overlaps_with_what_is_written_are_conflicts() {
        let params = [param("A", ParamKind::Pointer(DType::F32)), param("B", ParamKind::Pointer(DType::F32))];
        let bound = |a: u64, b: u64, reached: &[u64]| {
            let one = |&start: &u64| Reached { name: String::new(), start, bytes: 16 };
            let reached = reached.iter().map(one).collect();
            let bytes = vec![Some(64), Some(32)];
            bind_raw("k", &params, RawArgs { slots: vec![a, b], bytes, reached, ..RawArgs::default() }).unwrap()
        };
        let same = bound(4096, 4096 + 32, &[]);
        assert!(same.overlap() && same.conflict(&[true, false]) && same.conflict(&[false, true]));
        assert!(!same.conflict(&[false, false]));
        assert!(!bound(4096, 4096 + 64, &[]).overlap());
        assert!(bound(4096, 8192, &[4096 + 60]).conflict(&[false, true]));
        assert!(!bound(4096, 8192, &[4096 + 64]).conflict(&[true, true]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let (mut a, mut d) = (vec![0f32; 10], vec![0f64; 3]);
        assert!(message(&mut []).contains("takes 3 arguments (A: ptr<f32>, B: ptr<f32>, n: i32), but 0 were given"));
        let m = message(&mut [Arg::from(&mut d[..]), Arg::same_as(0), Arg::from(1i32)]);
        assert_eq!(m, "argument `A` is ptr<f32>, not a buffer of f64");
        let m = message(&mut [Arg::from(&mut a[..]), Arg::from(2.5f32), Arg::from(1i32)]);
        assert_eq!(m, "argument `B` is ptr<f32>, not the f32 2.5");
        let m = message(&mut [Arg::from(&mut a[..]), Arg::same_as(0), Arg::from(1i64)]);
        assert_eq!(m, "argument `n` is i32, not the i64 1");
        assert!(
            message(&mut [Arg::same_as(1), Arg::same_as(0), Arg::from(1i32)]).contains("does not refer to a buffer")
        );
        assert!(
            message(&mut [Arg::same_as(9), Arg::same_as(0), Arg::from(1i32)]).contains("does not refer to a buffer")
        );
    }

    #[test]
    fn a_part_lies_inside() {
        let mut a = [0f32; 10];
        let start = a.as_ptr() as u64;
        let mut args = [Arg::from(&mut a[..]), Arg::part_of(0, 3..40), Arg::from(1i32)];
        let bound = bind("k", &abn(), &mut args).unwrap();
        assert_eq!(bound.extents[1], Some(Extent { start: start + 3, bytes: 37, writable: true }));
        assert!(bound.overlap());
        drop(bound);
        args[1] = Arg::part_of(0, 3..41);
        assert_eq!(message(&mut args), "argument `B` is not a part 3..41 of a buffer");
        args[1] = Arg::part_of(7, 0..0);
        assert!(message(&mut args).contains("is not a part"));
    }

    #[test]
    fn a_table_holds_addresses() {
        let params = [param("A", ParamKind::Pointer(DType::F32)), param("L", ParamKind::Pointer(DType::I64))];
        let mut a = [0f32; 2];
        let address = a.as_ptr() as u64;
        let mut args = [Arg::from(&mut a[..]), Arg::pointers(&[0, 0])];
        let bound = bind("k", &params, &mut args).unwrap();
        assert_eq!((bound._tables[0].get(0), bound._tables[0].get(1)), (address, address));
        assert!(bind("k", &params, &mut [Arg::same_as(1), Arg::pointers(&[0])]).is_err());
    }
}
