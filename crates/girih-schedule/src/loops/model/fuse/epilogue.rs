//! Values that follow a sum element by element: the kernel of the sum computes them, or the kernels that need them.

use super::demand::Demand;
use super::{Fusion, shares_out};
use crate::graph::ir::{Node, Op, ReduceOp, ValueId};
use crate::index::Ix;

/// The most operations between a sum and a value that follows it.
const LONGEST: usize = 16;

impl Fusion<'_> {
    /// A sum that a value follows element by element, where the kernels that need the value cannot compute the sum and would read it
    /// from memory. The sum's kernel then stores the value instead: that takes no more memory, each element is computed once, and a
    /// product that needs the value reads its operand where it lies.
    pub(super) fn stored_sum(&self, v: ValueId, node: &Node, demands: &[Demand]) -> Option<ValueId> {
        // A term of a sum is needed along an axis that the kernel does not have.
        let is_term = |d: &Demand| {
            let own = &self.roots[d.root].axes;
            d.operand || d.coords.iter().flat_map(Ix::axes).any(|axis| !own.contains(&axis))
        };
        let one_kernel = demands.iter().all(|d| d.root == demands[0].root);
        if self.load[v.0 as usize] || one_kernel && !demands.iter().any(is_term) {
            return None;
        }
        let numel = |v: ValueId| self.graph.numel(&self.graph.values[v].shape);
        let all = numel(v);
        let bits = |v: ValueId| self.graph.values[v].elem.dtype.bits();
        let (mut left, mut next) = (LONGEST, vec![node]);
        while let Some(node) = next.pop() {
            for x in node.values().filter(|x| self.uses[x.0 as usize] == 1 && !self.force.contains(x)) {
                let Some((of, _)) = self.graph.def(x) else { continue };
                // A narrower value is decided when its turn comes.
                if numel(x) != all || bits(x) < bits(v) {
                    continue;
                }
                match &of.op {
                    Op::Reduce { .. } if self.has_own_kernel(x, of) => return Some(x),
                    Op::Elementwise(_) | Op::IndexMap(_) if left > 0 && (in_order(of) || !is_map(of)) => {
                        left -= 1;
                        next.push(of);
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// True if a reduction's kernel keeps the threads busy.
    fn has_own_kernel(&self, sum: ValueId, node: &Node) -> bool {
        let is_product = matches!(node.op, Op::Reduce { op: ReduceOp::Dot, .. }) && self.product_of(sum).is_some();
        is_product || shares_out(self.numel(sum), self.terms(sum))
    }
}

fn is_map(node: &Node) -> bool {
    matches!(node.op, Op::IndexMap(_))
}

/// True if a map reads all elements of one tensor in their order.
fn in_order(node: &Node) -> bool {
    let Some((_, source)) = node.spread() else { return false };
    let axes: Vec<_> = source.coords.iter().flat_map(Ix::axes).collect();
    axes.is_sorted_by(|a, b| a < b)
}

#[cfg(test)]
mod tests {
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::plan_of;

    /// Which of the kernels of an expression hold an operation.
    fn holding(expression: &str, op: &str) -> Vec<bool> {
        let (_, plan) = plan_of(expression);
        plan.steps.iter().map(|step| print(&step.kernel, Dialect::Loop).contains(op)).collect()
    }

    #[test]
    fn what_follows_a_stored_sum_is_computed_with_it() {
        let product = "torch.relu(torch.randn(64, 48) @ torch.randn(48, 64) + torch.randn(64))";
        assert_eq!(holding(&format!("{product} @ torch.randn(64, 64)"), "max.nan"), [true, false]);
        assert_eq!(holding(&format!("{product}.sum(0)"), "max.nan"), [true, false]);
        let image = "torch.nn.ReLU6()(torch.nn.Conv2d(32, 32, 3, padding=1, groups=32)(torch.randn(1, 32, 14, 14)))";
        assert_eq!(holding(&format!("{image}.sum(1)"), "max.nan"), [true, false]);
        // An element of the result needs one of the sums: one kernel computes all.
        assert_eq!(holding("torch.randn(64, 64) * torch.relu(torch.randn(64, 48).sum(1))", "max.nan"), [true]);
    }

    #[test]
    fn what_takes_more_memory_is_computed_where_it_is_needed() {
        let narrow = "(torch.randn(64, 48).half() @ torch.randn(48, 64).half())";
        let (_, plan) = plan_of(&format!("{narrow}.float() @ torch.randn(64, 64)"));
        let kernels: Vec<String> = plan.steps.iter().map(|step| print(&step.kernel, Dialect::Loop)).collect();
        assert!(kernels[0].contains("matmul: ptr f16)") && kernels[1].contains("= f32(matmul"), "{kernels:#?}");
    }

    #[test]
    fn a_sum_that_two_values_need_is_stored() {
        let softmax = "torch.softmax(torch.randn(64, 48) @ torch.randn(48, 64), 1)";
        assert_eq!(holding(softmax, "exp("), [false, true]);
    }
}
