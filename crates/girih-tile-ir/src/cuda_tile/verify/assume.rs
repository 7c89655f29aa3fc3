//! The rules of `assume`: the facts that can be stated about each type of value.

use super::Verifier;
use super::ops::{Checked, Kind};
use super::types::{show, show_tile};
use crate::base::Code;
use crate::cuda_tile::ir::*;
use crate::num::DType;

impl<'a> Verifier<'a> {
    pub(super) fn assume(&mut self, op: &'a Op) -> Checked {
        let v = op.operand(0)?;
        let (ty, r) = (self.ty(v)?, self.ty(*op.results.first()?)?);
        if ty != r {
            self.mismatch(op, &show(ty), &show(r));
            return None;
        }
        let fact = op.attrs.iter().find_map(|(_, a)| if let Attr::Assumption(f) = a { Some(f) } else { None });
        let Some(fact) = fact else { return self.attribute(op, "`assume` needs a predicate") };
        let bad = |v: &mut Self, text: String| -> Checked {
            v.error(Code::BadAssumption, op.span, text);
            None
        };
        let tile = match ty {
            Type::Tile(t) => Some(t),
            Type::TensorView(_) => None,
            other => return bad(self, format!("nothing can be assumed of {}", show(other))),
        };
        let integral = |t: &TileType| Kind::Int.admits(t.elem) || Kind::Pointer.admits(t.elem);
        match (fact, tile) {
            (Assumption::DivBy { divisor, every, along }, _) => {
                if !divisor.is_power_of_two() || *divisor > 1 << 62 {
                    return bad(self, format!("div_by<{divisor}>: the divisor must be a power of two up to 2^62"));
                }
                if every.is_some() != along.is_some() {
                    return bad(self, "`every` and `along` go together".into());
                }
                match tile {
                    Some(t) if !integral(t) => {
                        return bad(self, format!("div_by is for integers and pointers, not {}", show_tile(t)));
                    }
                    Some(t) => {
                        if let (Some(every), Some(along)) = (every, along) {
                            let extent = usize::try_from(*along).ok().and_then(|a| t.shape.get(a));
                            let Some(&extent) = extent else {
                                return bad(self, format!("along {along} is not a dimension of {}", show_tile(t)));
                            };
                            if *every < 0 || *every as u64 > extent {
                                return bad(self, format!("every {every} does not lie between 0 and {extent}"));
                            }
                        }
                    }
                    None if every.is_some() => return bad(self, "`every` and `along` are not for tensor views".into()),
                    None => {}
                }
            }
            (Assumption::SameElements(group), Some(t)) => {
                if !integral(t) {
                    return bad(self, format!("same_elements is for integers and pointers, not {}", show_tile(t)));
                }
                if group.len() != t.shape.len() {
                    return bad(
                        self,
                        format!(
                            "same_elements needs {} numbers for {}, not {}",
                            t.shape.len(),
                            show_tile(t),
                            group.len()
                        ),
                    );
                }
                for (g, &n) in group.iter().zip(&t.shape) {
                    if *g < 0 || *g as u64 > n {
                        return bad(self, format!("same_elements: {g} does not lie between 0 and {n}"));
                    }
                }
            }
            (Assumption::Bounded { lb, ub }, Some(t)) => {
                let Some(d) = t.num().filter(|d| d.is_int() && *d != DType::I4) else {
                    return bad(self, format!("bounded is for integers, not {}", show_tile(t)));
                };
                let (lo, hi) = (-(1i128 << (d.bits() - 1)), (1i128 << (d.bits() - 1)) - 1);
                for b in [lb, ub].into_iter().flatten() {
                    if !(lo..=hi).contains(&(*b as i128)) {
                        return bad(self, format!("the bound {b} does not fit {d}"));
                    }
                }
                if let (Some(l), Some(u)) = (lb, ub)
                    && l > u
                {
                    return bad(self, format!("the bounds {l} and {u} are in the wrong order"));
                }
            }
            (_, None) => return bad(self, "only div_by can be assumed of a tensor view".into()),
        }
        Some(())
    }
}
