//! Keys that a mask leaves to no row of a block, as those behind the diagonal of causal attention.
//!
//! In: the statements that compute a score. Out: up to which key a row's scores can be more than -inf, over the loops around.
//!
//! ```text
//! ix = index i - key
//! in = ix >= 0                            -->      i
//! score = select(seen, s, -inf)
//! ```

use crate::index::{Cmp, Ix};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::op::Predicate;
use crate::num::{DType, ScalarOp, convert, literal};

/// The last keys that the conditions of a score let through, each for itself.
pub fn causal_bounds(stmts: &[&Stmt], score: ValId, key: AxisId) -> Vec<Ix> {
    let reach = Reach { stmts, key };
    let Some(Stmt::Let { op: ScalarOp::Select, args, .. }) = reach.made(score) else { return vec![] };
    let [Opnd::Val(cond), _, Opnd::Const { dtype, bits }] = args[..] else { return vec![] };
    if !is_minus_infinity(dtype, bits) {
        return vec![];
    }
    let mut out = vec![];
    reach.conjuncts(cond, &mut out);
    out
}

fn is_minus_infinity(dtype: DType, bits: u64) -> bool {
    dtype.is_float() && convert::to_f64(dtype, bits) == f64::NEG_INFINITY
}

struct Reach<'a> {
    stmts: &'a [&'a Stmt],
    key: AxisId,
}

impl<'a> Reach<'a> {
    fn made(&self, v: ValId) -> Option<&'a Stmt> {
        self.stmts.iter().find(|s| walk::def(s) == Some(v)).copied()
    }

    fn conjuncts(&self, cond: ValId, out: &mut Vec<Ix>) {
        match self.made(cond) {
            Some(Stmt::Let { op: ScalarOp::And, args, .. }) => {
                for arg in args {
                    if let Opnd::Val(v) = arg {
                        self.conjuncts(*v, out);
                    }
                }
            }
            Some(Stmt::Let { op: ScalarOp::CmpI { pred, .. }, args, .. }) => {
                let cmp = match pred {
                    Predicate::GreaterThanOrEqual => Cmp::Ge,
                    Predicate::GreaterThan => Cmp::Gt,
                    Predicate::LessThanOrEqual => Cmp::Le,
                    Predicate::LessThan => Cmp::Lt,
                    _ => return,
                };
                if let [a, b] = args[..]
                    && let (Some(a), Some(b)) = (self.index(a), self.index(b))
                {
                    out.extend(self.up_to(&Ix::sub(a, b), cmp));
                }
            }
            Some(Stmt::Test { mask, .. }) => {
                for c in &mask.conds {
                    out.extend(self.up_to(&Ix::sub(c.lhs.clone(), c.rhs.clone()), c.cmp));
                }
            }
            _ => {}
        }
    }

    fn index(&self, of: Opnd) -> Option<Ix> {
        match of {
            Opnd::Const { dtype, bits } => Some(Ix::Const(literal::sign_extend(dtype, bits))),
            Opnd::Val(v) => match self.made(v) {
                Some(Stmt::Index { ix, .. }) => Some(ix.clone()),
                _ => None,
            },
        }
    }

    /// The last key for which `ix cmp 0` holds.
    fn up_to(&self, ix: &Ix, cmp: Cmp) -> Option<Ix> {
        let (by, rest) = ix.linear(self.key)?;
        let strict = || Ix::Const(-1);
        match (by.as_const()?, cmp) {
            (-1, Cmp::Ge) => Some(rest),
            (-1, Cmp::Gt) => Some(Ix::add(rest, strict())),
            (1, Cmp::Le) => Some(Ix::sub(Ix::Const(0), rest)),
            (1, Cmp::Lt) => Some(Ix::add(Ix::sub(Ix::Const(0), rest), strict())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::tests::kernel;

    /// The bounds of the keys that a score's mask leaves, where `lines` compute the condition `seen`.
    fn last(lines: &str, otherwise: &str) -> Vec<String> {
        let k = kernel(&format!(
            "loop kernel k(x: ptr f32, y: ptr f32, n: i64):
  for i in 0..8: free
    for key in 0..8: serial
      s: f32 = load x[key]
{lines}
      score: f32 = select(seen, s, {otherwise})
      store y[i*8 + key] = score
"
        ));
        let (mut axes, mut body) = (vec![], &k.body);
        while let [Stmt::For(f)] = &body[..] {
            axes.push(f.axis);
            body = &f.body;
        }
        let stmts: Vec<&Stmt> = body.iter().collect();
        let score = stmts.iter().rev().find_map(|s| walk::def(s)).unwrap();
        let name =
            |ix: &Ix| ix.eval(&|leaf| if *leaf == Ix::Axis(axes[0]) { 100 } else { leaf.as_const().unwrap_or(7) });
        causal_bounds(&stmts, score, axes[1]).iter().map(|ix| name(ix).to_string()).collect()
    }

    #[test]
    fn masks_of_positions_end_the_keys() {
        for (lines, want) in [
            ("      d: i64 = index i - key\n      seen: i1 = d >= 0", &["100"][..]),
            ("      d: i64 = index i - key\n      seen: i1 = d > 0", &["99"]),
            ("      d: i64 = index key - i*2\n      seen: i1 = d <= 3", &["203"]),
            ("      seen: i1 = test key < i + n", &["106"]),
            ("      d: i64 = index key\n      e: i64 = index i\n      seen: i1 = d < e", &["99"]),
            (
                "      d: i64 = index i - key\n      a: i1 = d >= 0\n      b: i1 = d <= 4\n      seen: i1 = a & b",
                &["100"],
            ),
            ("      d: i64 = index i - key\n      seen: i1 = d <= 0", &[]),
            ("      d: i64 = index i - key*2\n      seen: i1 = d >= 0", &[]),
            ("      seen: i1 = s >= 0.0", &[]),
        ] {
            assert_eq!(last(lines, "-inf"), want, "{lines}");
            assert!(last(lines, "0.0").is_empty(), "{lines}");
        }
    }
}
