//! Prints and assertions of a kernel, by CUDA's `printf`.
//!
//! ```text
//! print "i = %i, t = %.1f\n", i, t[2] site 0      -->  printf("i = %i, t = [%.1f, %.1f]\n", i, t[0], t[1]);
//! assert inside, "past the end" site 1            -->  if (!inside) { printf(...); __trap(); }
//! ```
//! A format is one of `num::printf`: it is written anew for the types of the values, so that no format of a user
//! reaches C.

use super::stmt::{Printer, Result};
use crate::kernel::ir::*;
use crate::num::op::Rounding;
use crate::num::printf::{self, Part};
use crate::num::{DType, ScalarOp};

/// The most values that CUDA's `printf` takes.
const MOST_VALUES: u64 = 32;

impl Printer<'_> {
    pub(super) fn print(&mut self, format: &Quoted, args: &[PrintArg]) -> Result<()> {
        let elem = |arg: &PrintArg| match arg {
            PrintArg::Scalar(Opnd::Val(v)) => self.val_ty(*v).elem,
            PrintArg::Scalar(Opnd::Const { dtype, .. }) => Elem::Num(*dtype),
            PrintArg::Tile { slot, .. } => self.kernel.slots[*slot].elem,
        };
        let elems: Vec<Elem> = args.iter().map(elem).collect();
        let count = |arg: &PrintArg| match arg {
            PrintArg::Scalar(_) => 1,
            PrintArg::Tile { shape, .. } => shape.iter().fold(1u64, |n, d| n.saturating_mul(*d)),
        };
        if args.iter().map(count).fold(0u64, u64::saturating_add) > MOST_VALUES {
            return self.refuse(&format!("a print of more than {MOST_VALUES} values, which is what CUDA's takes"));
        }
        let parts = match printf::parts(format, &elems) {
            Ok(parts) => parts,
            Err(why) => return self.refuse(&format!("a print that cannot be written: {why}")),
        };
        let (mut text, mut values) = (String::new(), vec![]);
        let mut shown = args.iter().zip(elems);
        for part in parts {
            match part {
                Part::Text(words) => text += &words.in_c_format(),
                Part::Value { flags, letter } => {
                    let Some((arg, elem)) = shown.next() else { break };
                    match arg {
                        PrintArg::Scalar(opnd) => {
                            let value = self.opnd(*opnd, Ty { elem, lanes: 1 });
                            text += &self.value(elem, &value, &flags, letter, &mut values);
                        }
                        PrintArg::Tile { slot, shape } => {
                            let name = self.kernel.slots[*slot].name.to_string();
                            let mut next = 0;
                            self.tile(
                                shape,
                                &mut |p: &mut Self| {
                                    let truth = if elem == Elem::Num(DType::I1) { " != 0" } else { "" };
                                    let value = format!("{name}[{next}]{truth}");
                                    next += 1;
                                    p.value(elem, &value, &flags, letter, &mut values)
                                },
                                &mut text,
                            );
                        }
                    }
                }
            }
        }
        values.insert(0, format!("\"{text}\""));
        self.out.line(&format!("printf({});", values.join(", ")));
        Ok(())
    }

    /// The elements in nested brackets, row-major.
    fn tile(&mut self, shape: &[u64], element: &mut dyn FnMut(&mut Self) -> String, text: &mut String) {
        let [n, inner @ ..] = shape else {
            *text += &element(self);
            return;
        };
        text.push('[');
        for i in 0..*n {
            *text += if i > 0 { ", " } else { "" };
            self.tile(inner, element, text);
        }
        text.push(']');
    }

    /// The conversion of one value, which is added to the values.
    fn value(&mut self, elem: Elem, x: &str, flags: &str, letter: char, values: &mut Vec<String>) -> String {
        let float = "eEfFgGaA".contains(letter);
        let signed = matches!(letter, 'd' | 'i');
        let (value, length) = match elem {
            Elem::Ptr(_) if float => (format!("(double)(unsigned long long){x}"), ""),
            Elem::Ptr(_) => (format!("(unsigned long long){x}"), "ll"),
            Elem::Num(d) if d.is_float() => {
                let double = match d {
                    DType::F64 => x.to_string(),
                    DType::F32 | DType::TF32 => format!("(double){x}"),
                    _ => {
                        let op = ScalarOp::FToF { to: DType::F64, rounding: Rounding::NearestEven };
                        self.scalar(op, elem, &[x])
                    }
                };
                if float { (double, "") } else { (format!("(long long)({double})"), "ll") }
            }
            Elem::Num(DType::I4) if signed || float => (format!("(({x} & 15) ^ 8) - 8"), ""),
            Elem::Num(DType::I4) => (format!("{x} & 15"), ""),
            Elem::Num(_) if float => (format!("(double){x}"), ""),
            Elem::Num(DType::I64) => (x.to_string(), "ll"),
            Elem::Num(d @ (DType::I8 | DType::I16)) if !signed => {
                (format!("({}){x}", self.support.ty(if d == DType::I8 { "u8" } else { "u16" }, 1)), "")
            }
            // An integer that is widened to an address is zero-extended.
            Elem::Num(DType::I32) if letter == 'p' => (format!("({}){x}", self.support.ty("u32", 1)), ""),
            Elem::Num(_) => (x.to_string(), ""),
        };
        let (value, conversion) = match letter {
            'c' => (format!("(int)({value})"), format!("%{flags}c")),
            'p' if matches!(elem, Elem::Ptr(_)) => (value, format!("0x%{flags}llx")),
            'p' => (format!("(unsigned long long)({value})"), format!("0x%{flags}llx")),
            _ => (value, format!("%{flags}{length}{letter}")),
        };
        values.push(value);
        conversion
    }

    /// Reports the message and the place, and stops the launch.
    pub(super) fn assert(&mut self, cond: Opnd, message: &Quoted) {
        let cond = self.opnd(cond, Ty::num(DType::I1, 1));
        let (said, place) = (message.in_c_format(), "blockIdx.x, blockIdx.y, blockIdx.z");
        self.out.line(&format!("if (!{cond}) {{ printf(\"block %u,%u,%u: {said}\\n\", {place}); __trap(); }}"));
    }
}
