//! Control flow: entering and leaving regions, loops, folds and calls.

use super::fold::Fold;
use super::machine::{Active, Block, Cx, Kind, Machine, Step};
use super::scalar::{integer, range};
use super::value::{Tile, Val};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::cuda_tile::ir::*;
use crate::num::op::Signedness;

impl<'a> Machine<'a> {
    pub(super) fn start_for(&mut self, block: &mut Block, cx: Cx<'a>) -> Result<Step, Trap> {
        let [lb, ub, step, init @ ..] = cx.op.operands.as_slice() else { return Err(self.malformed(cx)) };
        let unsigned = cx.op.flag(AttrKey::UnsignedCmp);
        let sign = if unsigned { Signedness::Unsigned } else { Signedness::Signed };
        let mut bounds = [0; 3];
        for (bound, &v) in bounds.iter_mut().zip([lb, ub, step]) {
            let t = self.tile(block, cx, v)?;
            self.defined(cx, &t, "the bound of a loop")?;
            let ty = t.elem_num().ok_or_else(|| self.malformed(cx))?;
            *bound = integer(ty, sign, t.get(0));
        }
        let [lb, ub, step] = bounds;
        if step <= 0 {
            let message = format!("the step of this `for` is {step}; it must be positive");
            return Err(self.trap(cx, Code::StepNotPositive, message, None));
        }
        let init = self.values(block, cx, init)?;
        if lb >= ub {
            self.complete(block, cx, init);
            return Ok(Step::Next);
        }
        let &region = cx.op.regions.first().ok_or_else(|| self.malformed(cx))?;
        self.bind(block, cx, region, 1, init)?;
        self.bind_iv(block, cx, region, lb)?;
        self.enter(block, region, Kind::For { op: cx.id, iv: lb, ub, step, unsigned });
        Ok(Step::Next)
    }

    pub(super) fn enter(&self, block: &mut Block, region: RegionId, kind: Kind) {
        if let Some(call) = block.calls.last_mut() {
            call.regions.push(Active { region, next: 0, kind });
        }
    }

    fn bind_iv(&self, block: &mut Block, cx: Cx<'a>, region: RegionId, iv: i128) -> Result<(), Trap> {
        let arg = cx.func.regions.get(region).and_then(|r| r.args.first()).copied();
        let (Some(arg), Some(call)) = (arg, block.calls.last_mut()) else { return Err(self.malformed(cx)) };
        let ty = cx.func.tile_ty(arg).ok_or_else(|| self.malformed(cx))?;
        let mask = ty.num().map_or(u64::MAX, |d| d.mask());
        call.set(arg, Val::Tile(Tile::new(ty, vec![iv as u64 & mask])));
        Ok(())
    }

    /// Sets the arguments of a region from the `skip`th on.
    pub(super) fn bind(
        &self,
        block: &mut Block,
        cx: Cx<'a>,
        region: RegionId,
        skip: usize,
        values: Vec<Val>,
    ) -> Result<(), Trap> {
        let args = cx.func.regions.get(region).map(|r| r.args.as_slice()).unwrap_or(&[]);
        let (Some(args), Some(call)) = (args.get(skip..), block.calls.last_mut()) else {
            return Err(self.malformed(cx));
        };
        for (&a, v) in args.iter().zip(values) {
            call.set(a, v);
        }
        Ok(())
    }

    /// Leaves nested `if`s so that a loop's region is the innermost.
    pub(super) fn unwind_to_loop(&self, block: &mut Block, cx: Cx<'a>) -> Result<(), Trap> {
        let call = block.calls.last_mut().ok_or_else(|| self.malformed(cx))?;
        while let Some(active) = call.regions.last() {
            match active.kind {
                Kind::Loop(_) | Kind::For { .. } => return Ok(()),
                Kind::If(_) => call.regions.pop(),
                _ => break,
            };
        }
        Err(self.malformed(cx))
    }

    /// Ends the innermost region with `values`; `stop` leaves a loop.
    pub(super) fn end_region(&mut self, block: &mut Block, values: Vec<Val>, stop: bool) -> Result<Step, Trap> {
        let Some(call) = block.calls.last_mut() else { return Ok(Step::Done) };
        let findex = call.func;
        let Some(active) = call.regions.last_mut() else { return Ok(Step::Done) };
        let region = active.region;
        match &mut active.kind {
            Kind::Body => return self.leave(block, values),
            Kind::If(op) => {
                let op = *op;
                call.regions.pop();
                if let Some(cx) = self.cx(block, findex, op) {
                    self.complete(block, cx, values);
                }
            }
            Kind::Loop(op) => {
                let op = *op;
                active.next = 0;
                let Some(cx) = self.cx(block, findex, op) else { return Ok(Step::Done) };
                if stop {
                    block.calls.last_mut().map(|c| c.regions.pop());
                    self.complete(block, cx, values);
                } else {
                    self.bind(block, cx, region, 0, values)?;
                }
            }
            Kind::For { op, iv, ub, step, unsigned } => {
                let op = *op;
                *iv += *step;
                active.next = 0;
                let (iv, ub, unsigned) = (*iv, *ub, *unsigned);
                let Some(cx) = self.cx(block, findex, op) else { return Ok(Step::Done) };
                let args = cx.func.regions.get(region).map(|r| r.args.as_slice()).unwrap_or(&[]);
                let sign = if unsigned { Signedness::Unsigned } else { Signedness::Signed };
                let ty = args.first().and_then(|&a| cx.func.tile_ty(a)).and_then(|t| t.num());
                // An induction variable beyond its type's range has passed every bound.
                let past = ty.is_none_or(|d| iv > range(d, sign).1);
                if stop || iv >= ub || past {
                    block.calls.last_mut().map(|c| c.regions.pop());
                    self.complete(block, cx, values);
                } else {
                    self.bind(block, cx, region, 1, values)?;
                    self.bind_iv(block, cx, region, iv)?;
                }
            }
            Kind::Fold(_) => {
                let Some(Active { kind: Kind::Fold(mut fold), .. }) = call.regions.pop() else { return Ok(Step::Done) };
                let Some(cx) = self.cx(block, findex, fold.op) else { return Ok(Step::Done) };
                let out = values.iter().map(|v| match v {
                    Val::Tile(t) => (t.get(0), t.origin(0)),
                    _ => (0, 0),
                });
                fold.accept(out);
                self.fold_step(block, cx, *fold)?;
            }
        }
        Ok(Step::Next)
    }

    /// Runs a fold's body once more through the stack, or completes it.
    pub(super) fn fold_step(&mut self, block: &mut Block, cx: Cx<'a>, mut fold: Fold) -> Result<(), Trap> {
        let region = fold.region;
        let Some(args) = fold.args() else {
            let results = fold.results();
            self.complete(block, cx, results);
            return Ok(());
        };
        let params = cx.func.regions.get(region).map(|r| r.args.as_slice()).unwrap_or(&[]);
        let call = block.calls.last_mut().ok_or_else(|| self.malformed(cx))?;
        for (&p, &(bits, origin)) in params.iter().zip(args) {
            let ty = cx.func.tile_ty(p).ok_or_else(|| self.malformed(cx))?;
            call.set(p, Val::Tile(Tile::new(ty, vec![bits]).with_poison(vec![origin])));
        }
        call.regions.push(Active { region, next: 0, kind: Kind::Fold(Box::new(fold)) });
        Ok(())
    }

    /// Ends the innermost call.
    pub(super) fn leave(&mut self, block: &mut Block, values: Vec<Val>) -> Result<Step, Trap> {
        let depth = block.calls.len();
        block.calls.pop();
        block.allocas.iter_mut().filter(|a| a.0 == depth).for_each(|a| a.0 = usize::MAX);
        let Some(call) = block.calls.last() else { return Ok(Step::Done) };
        // The caller's next operation is the one after its call.
        let Some(active) = call.regions.last() else { return Ok(Step::Done) };
        let func = &self.module.funcs[call.func];
        let id = func.regions.get(active.region).and_then(|r| r.ops.get(active.next.checked_sub(1)?)).copied();
        if let Some(cx) = id.and_then(|id| self.cx(block, block.calls.last()?.func, id)) {
            self.complete(block, cx, values);
        }
        Ok(Step::Next)
    }

    /// Sets an operation's results and drops values without further uses.
    pub(super) fn complete(&self, block: &mut Block, cx: Cx<'a>, values: Vec<Val>) {
        let Some(call) = block.calls.last_mut() else { return };
        for (&r, v) in cx.op.results.iter().zip(values) {
            call.set(r, v);
        }
        for &v in self.tables.deaths(cx.findex, cx.id) {
            call.put(v, None);
        }
    }

    pub(super) fn condition(&self, block: &Block, cx: Cx<'a>) -> Result<bool, Trap> {
        let v = cx.op.operand(0).ok_or_else(|| self.malformed(cx))?;
        let t = self.tile(block, cx, v)?;
        self.defined(cx, &t, "the condition of a branch")?;
        Ok(t.get(0) & 1 == 1)
    }
}
