//! Launches: a list of argument addresses becomes values, the known facts about the memory behind them, and a run.
//!
//! The entry's parameters say how large each argument is. A cuTile kernel's name says more: which arguments are an
//! array's address, lengths and strides, so that its extent in bytes is known, and the assumptions that the kernel was
//! compiled under. An assumption that does not hold for a launch is refused here, since the kernel would compute nonsense.

use std::ffi::{c_uint, c_void};
use std::sync::{Arc, OnceLock};

use girih::{Device, Param, ParamKind, RawArgs, Reached};

use crate::driver;
use crate::failure::{self, Failure, Result};
use crate::ffi::In;
use crate::graph::{self, Work};
use crate::handles::Handle;
use crate::host;
use crate::mangle::{self, Array, Parameter};
use crate::memory;
use crate::module::{self, Loaded, param_bytes};
use crate::options;
use crate::simt;

/// Where an argument lies in a packed list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    pub offset: usize,
    pub bytes: usize,
}

/// How a kernel's arguments are understood; made once.
#[derive(Debug)]
pub struct Plan {
    pub fields: Vec<Field>,
    params: Vec<Param>,
    /// Arrays, and lists of arrays, in the order of the arguments; none where the name does not tell.
    arrays: Vec<Described>,
    lists: Vec<Described>,
}

/// An array, or the arrays of a list.
#[derive(Debug)]
struct Described {
    /// `argument 2`, or `argument 0[1]` within a tuple; counted as in Python.
    name: String,
    /// The parameter that holds its address.
    at: usize,
    array: Array,
    element_bytes: u64,
}

/// Addresses whose extent is not known are taken to reach this far.
const UNKNOWN: u64 = 1 << 46;
/// Lists that say they are longer are refused.
const LONGEST_LIST: i64 = 1 << 24;

impl Plan {
    pub fn new(symbol: &str, params: &[Param], arguments: &[String]) -> Plan {
        let mut fields = Vec::with_capacity(params.len());
        let mut offset = 0usize;
        for param in params {
            let bytes = param_bytes(param);
            offset = offset.next_multiple_of(bytes.max(1));
            fields.push(Field { offset, bytes });
            offset += bytes;
        }
        let mut plan = Plan { fields, params: params.to_vec(), arrays: Vec::new(), lists: Vec::new() };
        let Some(signature) = mangle::parse(symbol) else { return plan };
        let mut at = 0;
        let named = signature
            .parameters
            .iter()
            .enumerate()
            .map(|(i, p)| (arguments.get(i).cloned().unwrap_or_else(|| format!("argument {i}")), p));
        let fits = named.into_iter().all(|(name, p)| plan.describe(p, name, &mut at)) && at == params.len();
        if !fits {
            // Not a name of that scheme after all, or one of a scheme to come.
            plan.arrays.clear();
            plan.lists.clear();
        }
        plan
    }

    /// The name of a parameter for messages.
    pub fn name(&self, at: usize) -> Option<String> {
        self.arrays.iter().chain(&self.lists).find(|d| d.at == at).map(|d| d.name.clone())
    }

    /// Takes the parameters of one Python argument; false where they are not as its description says.
    fn describe(&mut self, parameter: &Parameter, name: String, at: &mut usize) -> bool {
        let is_pointer = |p: Option<&Param>| matches!(p, Some(Param { kind: ParamKind::Pointer(_), .. }));
        let first = *at;
        match parameter {
            Parameter::Constant => true,
            Parameter::Scalar => {
                *at += 1;
                !is_pointer(self.params.get(first))
            }
            Parameter::Pointer => {
                *at += 1;
                is_pointer(self.params.get(first))
            }
            Parameter::Group(items) => {
                let named = items.iter().enumerate().map(|(i, p)| (format!("{name}[{i}]"), p));
                named.into_iter().all(|(name, p)| self.describe(p, name, at))
            }
            Parameter::Array(array) => {
                *at += 1 + 2 * array.axes.len();
                let Some(element_bytes) = array.element_bytes() else { return false };
                self.arrays.push(Described { name, at: first, array: array.clone(), element_bytes });
                let numbers = self.params.get(first + 1..*at).unwrap_or_default();
                is_pointer(self.params.get(first)) && numbers.iter().all(|p| !is_pointer(Some(p)))
            }
            Parameter::List(array) => {
                *at += 2;
                let Some(element_bytes) = array.element_bytes() else { return false };
                self.lists.push(Described { name, at: first, array: array.clone(), element_bytes });
                is_pointer(self.params.get(first)) && !is_pointer(self.params.get(first + 1))
            }
        }
    }

    /// The values of an argument list: an array of addresses, or a packed list in the manner of `extra`.
    fn values(&self, params: In<In<u8>>, extra: In<usize>) -> Result<Vec<u64>> {
        if self.fields.is_empty() {
            return Ok(Vec::new());
        }
        if !params.is_null() {
            return self.fields.iter().enumerate().map(|(i, p)| value(params.at(i)?, 0, p.bytes)).collect();
        }
        // Pairs of a tag and a value: 1 the buffer, 2 the address of its size, 0 the end.
        let (mut buffer, mut size) = (None, None);
        for i in (0..8).step_by(2) {
            if extra.is_null() {
                break;
            }
            match extra.at(i)? {
                0 => break,
                1 => buffer = Some(extra.at(i + 1)?),
                2 => size = Some(extra.at(i + 1)?),
                tag => return Err(Failure::value(format!("the launch has an unknown extra argument {tag}"))),
            }
        }
        let (Some(buffer), Some(size)) = (buffer, size) else {
            return Err(Failure::value(format!(
                "the kernel takes {} arguments, but none were given",
                self.fields.len()
            )));
        };
        let size = In::<usize>::from_address(size).get()?;
        let need = self.fields.last().map_or(0, |p| p.offset + p.bytes);
        if size < need {
            return Err(Failure::value(format!("the arguments take {need} bytes, but {size} were given")));
        }
        let buffer = In::<u8>::from_address(buffer);
        self.fields.iter().map(|p| value(buffer, p.offset, p.bytes)).collect()
    }

    /// An argument as a signed number.
    fn number(&self, slots: &[u64], at: usize) -> i64 {
        let (Some(&slot), Some(param)) = (slots.get(at), self.params.get(at)) else { return 0 };
        match param.kind {
            ParamKind::Scalar(dtype) if dtype.bits() < 64 => {
                let shift = 64 - dtype.bits();
                (slot << shift) as i64 >> shift
            }
            _ => slot as i64,
        }
    }

    /// The known facts about the memory of a launch; refuses arguments that break the kernel's assumptions.
    fn arguments(&self, slots: &[u64], checked: bool) -> Result<RawArgs> {
        let mut bytes: Vec<Option<u64>> = vec![None; self.params.len()];
        for d in &self.arrays {
            let number = |i: usize| self.number(slots, d.at + i);
            let extent = d.check(number(0) as u64, &|i| number(1 + i))?;
            if let Some(slot) = bytes.get_mut(d.at) {
                *slot = Some(extent);
            }
        }
        let mut reached = Vec::new();
        for d in &self.lists {
            let (start, count) = (self.number(slots, d.at) as u64, self.number(slots, d.at + 1));
            let extent = d.list(start, count, &mut reached)?;
            if let Some(slot) = bytes.get_mut(d.at) {
                *slot = Some(extent);
            }
        }
        for (i, param) in self.params.iter().enumerate() {
            if let (ParamKind::Pointer(_), Some(slot @ None)) = (param.kind, bytes.get_mut(i)) {
                let address = slots.get(i).copied().unwrap_or(0);
                *slot = Some(memory::around(address).map_or(UNKNOWN, |r| r.bytes - (address - r.start)));
            }
        }
        let mut live = Vec::new();
        if checked {
            // Memory around an argument does not become the kernel's because an allocation contains it.
            let used = slots.iter().zip(&bytes).filter_map(|(&start, bytes)| Some((start, (*bytes)?)));
            let used: Vec<(u64, u64)> = used.chain(reached.iter().map(|r| (r.start, r.bytes))).collect();
            let apart = |r: &Reached| used.iter().all(|&(start, n)| r.start + r.bytes <= start || start + n <= r.start);
            live = memory::all().into_iter().filter(apart).collect();
        }
        Ok(RawArgs { slots: slots.to_vec(), bytes, reached, live, ..RawArgs::default() })
    }
}

fn value(from: In<u8>, offset: usize, bytes: usize) -> Result<u64> {
    let mut word = [0u8; 8];
    for (i, byte) in word.iter_mut().enumerate().take(bytes) {
        *byte = from.at(offset + i)?;
    }
    Ok(u64::from_le_bytes(word))
}

impl Described {
    /// Tests the kernel's assumptions about an array; returns the bytes that it spans. `number` gives the lengths, then the
    /// strides.
    fn check(&self, address: u64, number: &dyn Fn(usize) -> i64) -> Result<u64> {
        let refuse = |what: String| {
            let message = format!("{}: {what}, but the kernel was compiled for arrays where it is", self.name);
            Failure::value(message).detail("kind", "argument")
        };
        let rank = self.array.axes.len();
        let mut empty = false;
        // Elements from the first to the last.
        let mut span = 1i128;
        for (i, axis) in self.array.axes.iter().enumerate() {
            let (length, stride) = (number(i), number(rank + i));
            let multiple = |n: i64, of: i64| n % of == 0;
            if !multiple(length, axis.length_multiple) {
                return Err(refuse(format!(
                    "length {length} of axis {i} is not a multiple of {}",
                    axis.length_multiple
                )));
            }
            if !multiple(stride, axis.stride_multiple) {
                return Err(refuse(format!(
                    "stride {stride} of axis {i} is not a multiple of {}",
                    axis.stride_multiple
                )));
            }
            if let Some(want) = axis.length.filter(|&n| n != length) {
                return Err(refuse(format!("length {length} of axis {i} is not {want}")));
            }
            if let Some(want) = axis.stride.filter(|&n| n != stride) {
                return Err(refuse(format!("stride {stride} of axis {i} is not {want}")));
            }
            if let Some(least) = axis.stride_least.filter(|&n| stride < n) {
                return Err(refuse(format!("stride {stride} of axis {i} is less than {least}")));
            }
            empty |= length <= 0;
            span += i128::from(length - 1).max(0) * i128::from(stride).max(0);
        }
        if empty {
            return Ok(0);
        }
        if address == 0 {
            return Err(Failure::value(format!("{}: the address of the array is null", self.name)));
        }
        let multiple = self.array.address_multiple;
        if !address.is_multiple_of(multiple.unsigned_abs()) {
            return Err(refuse(format!("address {address:#x} is not a multiple of {multiple}")));
        }
        let bytes = span.checked_mul(i128::from(self.element_bytes)).and_then(|n| u64::try_from(n).ok());
        bytes.filter(|&n| address.checked_add(n).is_some()).ok_or_else(|| {
            Failure::value(format!("{}: an array of {span} elements does not fit into memory", self.name))
        })
    }

    /// The arrays in a list's table; how many bytes the table has.
    fn list(&self, table: u64, count: i64, reached: &mut Vec<Reached>) -> Result<u64> {
        if !(0..=LONGEST_LIST).contains(&count) || (table == 0 && count > 0) {
            return Err(Failure::value(format!(
                "{}: {count} is not a valid length for the list at {table:#x}",
                self.name
            )));
        }
        let words = 1 + 2 * self.array.axes.len();
        let table = In::<i64>::from_address(table as usize);
        for i in 0..count as usize {
            let row: Vec<i64> = (0..words).map(|w| table.at(i * words + w)).collect::<Result<_>>()?;
            let address = row.first().copied().unwrap_or(0) as u64;
            let bytes = self.check(address, &|w| row.get(1 + w).copied().unwrap_or(0))?;
            reached.push(Reached { name: format!("{}[{i}]", self.name), start: address, bytes });
        }
        Ok(count as u64 * words as u64 * 8)
    }
}

/// A kernel with its arguments' values: a launch that can be made, again and again.
pub struct Call {
    kernel: Arc<Loaded>,
    grid: [u32; 3],
    slots: Vec<u64>,
}

/// Reads the arguments of a launch.
pub fn prepare(function: Handle, grid: [c_uint; 3], params: In<In<u8>>, extra: In<usize>) -> Result<Call> {
    let kernel = module::kernel(function)?;
    let slots = kernel.plan.values(params, extra)?;
    Ok(Call { kernel, grid, slots })
}

impl Call {
    /// Runs it and waits.
    pub fn run(&self) -> Result<()> {
        let current = options::current();
        let kernel = self.kernel.under(&current)?;
        let checked = current.options.check || current.options.device != Device::Cpu;
        let args = self.kernel.plan.arguments(&self.slots, checked)?;
        let passing = current.interrupt.then(girih::Passing::enter);
        // SAFETY: the caller of the launch vouches for the memory behind the arguments, as it does to any driver. That
        // the kernel keeps to it is the trust that `girih::Program` states.
        let launch = || unsafe { kernel.launch_raw(self.grid, args) };
        // Where there are lists, cuTile has a transaction on a buffer of the process open, which its lock guards.
        let keep = !self.kernel.plan.lists.is_empty();
        let outcome = match host::current() {
            Some(host) => host.around(keep, launch),
            None => launch(),
        };
        drop(passing);
        let report = outcome.map_err(|e| {
            let name = self.kernel.name.to_string_lossy();
            failure::from_girih(&e, Some(&self.kernel.program)).detail("kernel", name.as_ref())
        })?;
        report.warnings.iter().for_each(options::warn);
        Ok(())
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: c_uint,
}

/// Returns true if launches of a GPU's kernels return at once, as GIRIH_SHIM_IDLE=1 asks: to measure the work before them.
fn is_idle() -> bool {
    static IDLE: OnceLock<bool> = OnceLock::new();
    *IDLE.get_or_init(|| std::env::var("GIRIH_SHIM_IDLE").is_ok_and(|v| v == "1"))
}

fn launch(
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    on: Handle,
    params: In<In<u8>>,
    extra: In<usize>,
) -> Result<()> {
    if block.contains(&0) {
        return Err(Failure::value(format!("a block of {block:?} threads is empty")));
    }
    if let Some(function) = simt::function(function) {
        graph::not_captured(on)?;
        return if is_idle() { Ok(()) } else { function.launch(grid, block, shared, params) };
    }
    graph::submit(on, Work::Kernel(Arc::new(prepare(function, grid, params, extra)?)))
}

driver! {
    fn cuLaunchKernel(
        function: Handle, x: c_uint, y: c_uint, z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, on: Handle, params: In<In<u8>>, extra: In<usize>,
    ) {
        launch(function, [x, y, z], [block_x, block_y, block_z], shared, on, params, extra)
    }
    fn cuLaunchKernelEx(config: In<Config>, function: Handle, params: In<In<u8>>, extra: In<usize>) {
        let c = config.get()?;
        launch(function, c.grid, c.block, c.shared, c.stream, params, extra)
    }
    fn cuLaunchCooperativeKernel(
        function: Handle, x: c_uint, y: c_uint, z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, on: Handle, params: In<In<u8>>,
    ) {
        launch(function, [x, y, z], [block_x, block_y, block_z], shared, on, params, In::from_address(0))
    }
}

#[cfg(test)]
mod tests {
    use girih::DType;

    use super::*;

    /// Parameters by letter: p a pointer to f32, t one to i64, i and l integers of 32 and 64 bits, b a boolean.
    fn params(letters: &str) -> Vec<Param> {
        let kind = |c| match c {
            'p' => ParamKind::Pointer(DType::F32),
            't' => ParamKind::Pointer(DType::I64),
            'l' => ParamKind::Scalar(DType::I64),
            'b' => ParamKind::Scalar(DType::I1),
            _ => ParamKind::Scalar(DType::I32),
        };
        letters.chars().enumerate().map(|(i, c)| Param { name: i.to_string(), kind: kind(c) }).collect()
    }

    fn arguments(symbol: &str, letters: &str, slots: &[u64]) -> std::result::Result<RawArgs, String> {
        Plan::new(symbol, &params(letters), &[]).arguments(slots, false).map_err(|f| f.message)
    }

    #[test]
    fn extents_follow_from_lengths_and_strides() {
        // 3 rows of 5 elements, 8 apart: 2 * 8 + 4 * 1 + 1 elements of 4 bytes.
        let args = arguments("k_Kt1_A2f32_2t1", "piiii", &[4096, 3, 5, 8, 1]).unwrap();
        assert_eq!(args.bytes, [Some(21 * 4), None, None, None, None]);
        // 64-bit indices; nothing in an array without elements.
        let args = arguments("k_Kt1_A1f32_1t1_w_B1_A1f32", "pllpii", &[4096, 7, 1, 0, 0, 9]).unwrap();
        assert_eq!((args.bytes[0], args.bytes[3]), (Some(28), Some(0)));
        // Every element in one place.
        let args = arguments("k_Kt1_A1f32_1l0_i", "pii", &[4096, 1 << 20, 0]).unwrap();
        assert_eq!(args.bytes[0], Some(4));
    }

    #[test]
    fn tuples_are_flat_and_constants_are_not_passed() {
        let args = arguments("k_Kt2_T3A1f32_1t1Sf32I7_B1_Sb8", "piiib", &[4096, 2, 1, 0, 1]).unwrap();
        assert_eq!(args.bytes, [Some(8), None, None, None, None]);
        let plan = Plan::new("k_Kt2_T2I3A1f32_1t1", &params("pii"), &[]);
        assert_eq!((plan.name(0).as_deref(), plan.name(1)), (Some("argument 0[1]"), None));
    }

    #[test]
    fn arrays_of_a_list_are_found_in_its_table() {
        let table = [8192i64, 4, 1, 16384, 6, 1];
        let start = table.as_ptr().expose_provenance() as u64;
        let args = arguments("k_Kt1_LA1f32_1t1_p16_Si32", "tii", &[start, 2, 5]).unwrap();
        assert_eq!(args.bytes[0], Some(48));
        let found: Vec<_> = args.reached.iter().map(|r| (r.name.as_str(), r.start, r.bytes)).collect();
        assert_eq!(found, [("argument 0[0]", 8192, 16), ("argument 0[1]", 16384, 24)]);
        let wrong = [8200i64, 4, 1];
        let start = wrong.as_ptr().expose_provenance() as u64;
        assert!(arguments("k_Kt1_LA1f32_1t1_p16", "ti", &[start, 1]).unwrap_err().contains("not a multiple of 16"));
        assert!(arguments("k_Kt1_LA1f32_1t1", "ti", &[0, 1]).unwrap_err().contains("not a valid length"));
        assert!(arguments("k_Kt1_LA1f32_1t1", "ti", &[start, u64::from(u32::MAX)]).is_err());
    }

    #[test]
    fn what_the_name_does_not_tell_is_not_known() {
        for (symbol, letters) in [("plain", "pi"), ("k_Kt1_A1f32", "pi"), ("k_Kt1_Sf32_Sf32", "pi")] {
            let args = arguments(symbol, letters, &[64, 5]).unwrap();
            assert_eq!(args.bytes, [Some(UNKNOWN), None], "{symbol}");
        }
    }

    #[test]
    fn packed_arguments_are_aligned() {
        let fields = Plan::new("k", &params("bpil"), &[]).fields;
        let offsets: Vec<_> = fields.iter().map(|p| (p.offset, p.bytes)).collect();
        assert_eq!(offsets, [(0, 1), (8, 8), (16, 4), (24, 8)]);
    }
}
