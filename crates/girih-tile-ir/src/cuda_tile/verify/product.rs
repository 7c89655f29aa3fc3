//! The rules of matrix products: element types, shapes, scales.

use super::ops::Checked;
use super::types::show_tile;
use super::{Verifier, name};
use crate::base::Code;
use crate::cuda_tile::ir::*;
use crate::num::DType;

impl<'a> Verifier<'a> {
    pub(super) fn product(&mut self, op: &'a Op) -> Checked {
        let (a, b, c, r) = (self.tile(op, 0)?, self.tile(op, 1)?, self.tile(op, 2)?, self.result_tile(op, 0)?);
        self.same(op, c, r)?;
        let (Some(x), Some(y), Some(z)) = (a.num(), b.num(), c.num()) else {
            return self.element(op, format!("`{}` multiplies numbers", name(op)));
        };
        use DType as D;
        let f8 = |d| matches!(d, D::F8E4M3FN | D::F8E5M2);
        let fits = match op.opcode {
            Opcode::MmaI => (x, y, z) == (D::I8, D::I8, D::I32),
            Opcode::MmaF => {
                x == y
                    && match x {
                        D::F8E4M3FN | D::F8E5M2 | D::F16 => matches!(z, D::F16 | D::F32),
                        D::BF16 | D::TF32 | D::F32 => z == D::F32,
                        D::F64 => z == D::F64,
                        _ => false,
                    }
            }
            _ => z == D::F32 && ((f8(x) && f8(y)) || (x == D::F4E2M1FN && y == x)),
        };
        if !fits {
            let help = match op.opcode {
                Opcode::MmaI => "i8 times i8 accumulates in i32",
                Opcode::MmaF => "f8 and f16 accumulate in f16 or f32; bf16, tf32 and f32 in f32; f64 in f64",
                _ => "f8 or f4 operands accumulate in f32",
            };
            let text = format!("`{}` does not multiply {x} by {y} into {z}", name(op));
            self.error_help(Code::BadElementType, op.span, text, help);
            return None;
        }
        let rank = a.shape.len();
        let bad = |v: &mut Self, text: String| -> Checked {
            v.error(Code::BadProduct, op.span, text);
            None
        };
        let all = || format!("{}, {} and {}", show_tile(a), show_tile(b), show_tile(c));
        if !(2..=3).contains(&rank) || b.shape.len() != rank || c.shape.len() != rank {
            return bad(self, format!("a product takes tiles that all have rank 2, or 3 with a batch, not {}", all()));
        }
        let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
        let batch = rank == 2 || (a.shape[0] == b.shape[0] && a.shape[0] == c.shape[0]);
        if !batch || b.shape[rank - 2] != k || c.shape[rank - 2] != m || c.shape[rank - 1] != n {
            self.error_help(
                Code::BadProduct,
                op.span,
                format!("the shapes of this product do not fit: {}", all()),
                "an MxK tile times a KxN tile accumulates in an MxN tile",
            );
            return None;
        }
        if op.opcode != Opcode::MmaFScaled {
            return Some(());
        }
        let (s, t) = (self.tile(op, 3)?, self.tile(op, 4)?);
        if s.shape.len() != rank || t.shape.len() != rank {
            return bad(self, format!("the scales must have rank {rank}, not {} and {}", show_tile(s), show_tile(t)));
        }
        let blocks = s.shape[rank - 1];
        let outer = rank == 2 || (s.shape[0] == a.shape[0] && t.shape[0] == a.shape[0]);
        if !outer || s.shape[rank - 2] != m || t.shape[rank - 1] != n || t.shape[rank - 2] != blocks {
            return bad(
                self,
                format!("the scales {} and {} do not fit the operands {}", show_tile(s), show_tile(t), all()),
            );
        }
        let (Some(scale), true) = (s.num(), s.elem == t.elem) else {
            return self
                .element(op, format!("both scales must have one type, not {} and {}", show_tile(s), show_tile(t)));
        };
        let sizes: &[u64] = match (f8(x), scale) {
            (true, D::F8E8M0FNU) => &[32],
            (false, D::F8E4M3FN | D::F8E5M3FNU) => &[16],
            (false, D::F8E8M0FNU) => &[16, 32],
            _ => return self.element(op, format!("scales of {scale} do not go with operands of {x}")),
        };
        if blocks == 0 || k % blocks != 0 || !sizes.contains(&(k / blocks)) {
            let list = sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ");
            return bad(
                self,
                format!("a scale of {scale} covers {list} elements of k, but {k} elements have {blocks} scales"),
            );
        }
        Some(())
    }
}
