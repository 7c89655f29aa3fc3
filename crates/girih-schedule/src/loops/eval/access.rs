//! Elements in the evaluators' memory.

use crate::base::memory::{Fault, Memory};
use crate::loops::ir::{Global, RmwOp};
use crate::num::eval::apply;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};

/// The address of an element, and for 4-bit types which half of the byte.
fn address(base: u64, index: i64, elem: DType) -> (u64, u32) {
    if elem.bits() == 4 {
        (base.wrapping_add((index >> 1) as u64), 4 * (index & 1) as u32)
    } else {
        (base.wrapping_add((index as u64).wrapping_mul(elem.bytes())), 0)
    }
}

pub fn load(memory: &dyn Memory, base: u64, index: i64, elem: DType) -> Result<u64, Fault> {
    let (addr, half) = address(base, index, elem);
    let mut bytes = [0u8; 8];
    memory.read(addr, &mut bytes[..elem.bytes() as usize])?;
    let bits = u64::from_le_bytes(bytes);
    Ok(match elem {
        DType::I1 => (bits != 0) as u64,
        elem => (bits >> half) & elem.mask(),
    })
}

pub fn store(memory: &mut dyn Memory, base: u64, index: i64, elem: DType, bits: u64) -> Result<(), Fault> {
    let (addr, half) = address(base, index, elem);
    let mut bits = bits & elem.mask();
    if elem.bits() == 4 {
        let mut byte = [0u8];
        memory.read(addr, &mut byte)?;
        bits = (byte[0] & !(15 << half)) as u64 | bits << half;
    }
    memory.write(addr, &bits.to_le_bytes()[..elem.bytes() as usize])
}

/// The value that an atomic leaves in memory.
pub fn combined(op: RmwOp, elem: DType, old: u64, value: u64) -> u64 {
    let op = match op {
        RmwOp::And => ScalarOp::And,
        RmwOp::Or => ScalarOp::Or,
        RmwOp::Xor => ScalarOp::Xor,
        RmwOp::Add => ScalarOp::AddI,
        RmwOp::AddF => ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false },
        RmwOp::Max => ScalarOp::MaxI { sign: Signedness::Signed },
        RmwOp::Min => ScalarOp::MinI { sign: Signedness::Signed },
        RmwOp::UMax => ScalarOp::MaxI { sign: Signedness::Unsigned },
        RmwOp::UMin => ScalarOp::MinI { sign: Signedness::Unsigned },
        RmwOp::Xchg => return value,
    };
    apply(op, elem, &[old, value])
}

/// Places a global in memory and returns its address.
pub fn place_global(global: &Global, memory: &mut dyn Memory) -> Result<u64, Fault> {
    let count = global.bits.len() as u64;
    let bytes = if global.dtype.bits() == 4 { count.div_ceil(2) } else { count * global.dtype.bytes() };
    let addr = memory.allocate(bytes, global.align);
    for (i, bits) in global.bits.iter().enumerate() {
        store(memory, addr, i as i64, global.dtype, *bits)?;
    }
    Ok(addr)
}

/// The place of a fault, for the end of a message.
pub fn near(memory: &dyn Memory, fault: Fault) -> String {
    match memory.region(fault.addr) {
        Some((name, start, len)) => {
            format!(", {} bytes from the start of `{name}`, which has {len}", (fault.addr as i128) - (start as i128))
        }
        None => ", where nothing is mapped".to_string(),
    }
}
