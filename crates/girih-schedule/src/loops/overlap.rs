//! Products of warpgroups that go on while the next iteration of their pipeline begins.
//!
//! In: a pipeline whose stages TMA fills. Out: the parts of an iteration, in the order in which the threads run them; or why no
//! product can go on.
//!
//! ```text
//! for kt: pipeline(3, overlap)                     s = Q * K[0]    soften(s)
//!   s = Q * K[kt]                 first            for kt in 1..n {
//!   m, w <- soften(s)             between            begin s = Q * K[kt]
//!   o *= w                        after      -->     begin o += s * V[kt - 1]    (the words of `s` are in registers)
//!   o += s * V[kt]                last               wait for s    soften(s)    wait for o    o *= w
//!                                                  }
//!                                                  o += s * V[n - 1]
//! ```
//!
//! Sums and their terms keep their order. Invariants: what stands before the end of the first product touches nothing of the
//! last one; an operand of that is in registers or in a stage.

use super::ir::*;
use super::walk;

/// The product that goes on during the next iteration.
pub enum Overlap<'a> {
    /// The only product.
    Product,
    /// The last product of several statements.
    Last(Parts<'a>),
}

/// The parts of an iteration.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Up to the first product.
    pub first: &'a [Stmt],
    /// What does not touch the sums of the last product, and the rest.
    pub between: &'a [Stmt],
    pub after: &'a [Stmt],
    /// The last product.
    pub last: &'a [Stmt],
    /// The statements behind it, which touch neither its sums nor its operands: they run before.
    pub rest: &'a [Stmt],
}

impl<'a> Overlap<'a> {
    pub fn of(kernel: &Kernel, f: &'a For) -> Result<Overlap<'a>, &'static str> {
        let (stages, rest) = f.stages();
        if !stages.iter().all(|s| s.filled(Filled::Tma)) {
            return Err("threads fill a stage of it");
        }
        if is_product(rest) {
            return Ok(Overlap::Product);
        }
        const MORE: &str = "its iterations do more than multiply";
        let products: Vec<usize> = (0..rest.len()).filter(|at| is_product(&rest[*at..=*at])).collect();
        let [begins, ends] = products[..] else { return Err(MORE) };
        let (first, others) = rest.split_at(begins + 1);
        let (middle, others) = others.split_at(ends - begins - 1);
        let (last, behind) = others.split_at(1);
        let (all, before, product) = (walk::effects(rest), walk::effects(first), walk::effects(last));
        let space = |b: &BufId| kernel.bufs[*b].space;
        let staged = |b: &BufId| stages.iter().any(|s| matches!(s, Stmt::Stage { buf, .. } if buf == b));
        let own = |s: &Stmt| {
            !matches!(s, Stmt::Stage { .. }) && !matches!(s, Stmt::Local { buf } if space(buf) != Space::Private)
        };
        if all.leaves || all.bufs_written.iter().any(|b| space(b) == Space::Shared) || !rest.iter().all(own) {
            return Err("its iterations end early, or compute what threads share");
        }
        let defined = walk::refs(rest).vals_defined;
        let computed = walk::refs(last)
            .vals_used
            .iter()
            .any(|v| defined.contains(v) && !walk::refs(last).vals_defined.contains(v));
        if computed || !product.bufs_read.iter().all(|b| staged(b) || space(b) == Space::Private) {
            return Err("its last product reads more than stages and registers");
        }
        let touches = |of: &walk::Effects, b: &BufId| of.bufs_read.contains(b) || of.bufs_written.contains(b);
        if product.bufs_read.iter().any(|b| !staged(b) && touches(&before, b)) {
            return Err("its first product needs the sums of the last one, or changes its operand");
        }
        let then = walk::effects(behind);
        if product.bufs_read.iter().any(|b| touches(&then, b)) {
            return Err("what stands behind its last product touches the sums or what it reads");
        }
        let meets = |s: &Stmt| {
            let of = walk::effects(std::slice::from_ref(s));
            product.bufs_written.iter().any(|b| touches(&of, b))
        };
        let until = middle.iter().position(meets).unwrap_or(middle.len());
        let (between, after) = middle.split_at(until);
        Ok(Overlap::Last(Parts { first, between, after, last, rest: behind }))
    }
}

/// Returns true if statements are one product of the warpgroups of a block, and nothing else.
pub fn is_product(body: &[Stmt]) -> bool {
    let [Stmt::For(threads)] = body else { return false };
    threads.place == Place::Thread && matches!(&threads.body[..], [Stmt::For(f)] if f.place.is_of_groups())
}
