//! Structured control flow, calls, and blocks that branch.
//!
//! Early returns are branches between blocks. They become `if`s: the two sides of a conditional branch go up to the first
//! block that both reach, whose arguments the `if` gives.

use std::collections::BTreeSet;

use super::*;
use crate::ttir::ast::{Block, Successor};

/// Blocks that one function may be written out as, for each that it has.
const COPIES: usize = 8;

/// Blocks of a function that are written as `if`s.
struct Flow<'r> {
    region: &'r ast::Region,
    /// The blocks that each block reaches, itself among them.
    reach: Vec<BTreeSet<usize>>,
    left: usize,
}

impl<'m> Conv<'m> {
    /// The body of the function.
    pub(super) fn body(&mut self, region: &ast::Region) -> Res<()> {
        let n = region.blocks.len();
        let next = |at: usize| region.blocks[at].ops.last().map(|op| op.successors.as_slice()).unwrap_or(&[]);
        let mut reach: Vec<BTreeSet<usize>> = (0..n).map(|i| BTreeSet::from([i])).collect();
        // Blocks mostly come after those that reach them.
        loop {
            let mut grown = false;
            for at in (0..n).rev() {
                for (to, _) in next(at) {
                    if let Some(more) = reach.get(*to).cloned() {
                        let before = reach[at].len();
                        reach[at].extend(more);
                        grown |= reach[at].len() > before;
                    }
                }
            }
            if !grown {
                break;
            }
        }
        for at in 0..n {
            let loops = next(at).iter().any(|(to, _)| reach.get(*to).is_some_and(|r| r.contains(&at)));
            if let (true, Some(op)) = (loops, region.blocks[at].ops.last()) {
                return self.refuse_with(
                    op,
                    "a loop of blocks is not supported",
                    "write the loop with `for` or `while`",
                );
            }
        }
        let mut flow = Flow { region, reach, left: COPIES * n + 64 };
        self.flow(&mut flow, 0, None)
    }

    /// A block and those after it, up to a block whose arguments the enclosing `if` gives.
    fn flow(&mut self, flow: &mut Flow<'_>, at: usize, stop: Option<usize>) -> Res<()> {
        let region = flow.region;
        let Some((last, body)) = region.blocks.get(at).and_then(|b: &Block| b.ops.split_last()) else {
            return Err(Box::new(Diagnostic::error(Code::BadTerminator, "a block has no operations").at(self.span)));
        };
        match flow.left.checked_sub(1) {
            Some(left) => flow.left = left,
            None => return self.refuse(last, "the branches of this function cannot be written as nested conditions"),
        }
        for op in body {
            self.op(op)?;
        }
        self.at(last);
        match (last.row.name, &last.successors[..]) {
            ("tt.return", []) => {
                let values = self.args(last)?;
                self.emit(Opcode::Return, &[&values], vec![], vec![]);
                Ok(())
            }
            ("cf.br", [to]) => self.go(flow, last, to, stop),
            ("cf.cond_br", [yes, no]) => self.branch(flow, last, yes, no, stop),
            _ => {
                self.error(last, Code::BadTerminator, format!("`{}` does not end a block of a function", last.row.name))
            }
        }
    }

    fn go(&mut self, flow: &mut Flow<'_>, op: &Op, to: &Successor, stop: Option<usize>) -> Res<()> {
        let values = to.1.iter().map(|&v| self.value(op, v)).collect::<Res<Vec<_>>>()?;
        if stop == Some(to.0) {
            return self.give(&values);
        }
        self.enter(flow, op, to.0, &values)?;
        self.flow(flow, to.0, stop)
    }

    /// The arguments of a block are these values.
    fn enter(&mut self, flow: &Flow<'_>, op: &Op, block: usize, values: &[ValueId]) -> Res<()> {
        let args = flow.region.blocks.get(block).map(|b| b.args.as_slice()).unwrap_or(&[]);
        if args.len() != values.len() {
            return self.error(
                op,
                Code::OperandCount,
                format!("the block takes {} values, not {}", args.len(), values.len()),
            );
        }
        for (&arg, &v) in args.iter().zip(values) {
            self.values[arg.index()] = Some(v);
        }
        Ok(())
    }

    /// Ends a region of an `if`, with its values and the token of what was done.
    fn give(&mut self, values: &[ValueId]) -> Res<()> {
        let token = self.after_all();
        self.emit(Opcode::Yield, &[&[values, &[token]].concat()], vec![], vec![]);
        Ok(())
    }

    fn branch(
        &mut self,
        flow: &mut Flow<'_>,
        op: &Op,
        yes: &Successor,
        no: &Successor,
        stop: Option<usize>,
    ) -> Res<()> {
        let cond = self.arg(op, 0)?;
        let both: Vec<usize> = match (flow.reach.get(yes.0), flow.reach.get(no.0)) {
            (Some(a), Some(b)) => a.intersection(b).copied().collect(),
            _ => vec![],
        };
        // The first block that both reach: it reaches all others of those.
        let first = both.iter().copied().find(|&j| both.iter().all(|k| flow.reach[j].contains(k)));
        if first.is_none() && !both.is_empty() {
            return self.refuse(op, "the branches of this function cannot be written as nested conditions");
        }
        let join = first.or(stop);
        let Some(join) = join else {
            // Both sides return.
            let id = self.open(Opcode::If, &[&[cond]], vec![]);
            let mut regions = vec![];
            for side in [yes, no] {
                let order = self.order.clone();
                regions.push(self.side(|c| c.go(flow, op, side, None))?);
                self.order = order;
            }
            self.close(id, regions, vec![]);
            if self.func.results.is_empty() {
                self.emit(Opcode::Return, &[&[]], vec![], vec![]);
                return Ok(());
            }
            return self.refuse_with(
                op,
                "a function that is not inlined returns a value from within a condition",
                "assign the value in both branches, and return it once at the end",
            );
        };
        let args = flow.region.blocks.get(join).map(|b| b.args.clone()).unwrap_or_default();
        let mut types = vec![];
        for &v in &args {
            types.push(Type::Tile(tile(&self.module.values[v].ty, op.span, &op.loc)?));
        }
        types.push(Type::Token);
        let before = self.after_all();
        self.did_write(before);
        let id = self.open(Opcode::If, &[&[cond]], vec![]);
        let mut regions = vec![];
        for side in [yes, no] {
            let order = self.order.clone();
            regions.push(self.side(|c| c.go(flow, op, side, Some(join)))?);
            self.order = order;
        }
        let made = self.close(id, regions, types);
        let Some((&token, values)) = made.split_last() else { return Ok(()) };
        self.did_write(token);
        if stop == Some(join) {
            return self.give(values);
        }
        self.enter(flow, op, join, values)?;
        self.flow(flow, join, stop)
    }

    /// A new region, filled by `fill`.
    fn side(&mut self, fill: impl FnOnce(&mut Self) -> Res<()>) -> Res<RegionId> {
        let region = self.func.regions.push(Region::default());
        let outer = std::mem::replace(&mut self.region, region);
        let done = fill(self);
        self.region = outer;
        done.map(|()| region)
    }

    // Structured control flow.

    /// The only block of a region: what it does, and what ends it.
    fn block<'r>(&self, op: &Op, region: Option<&'r ast::Region>, end: &str) -> Res<(&'r Block, &'r Op, &'r [Op])> {
        let block = match region.map(|r| &r.blocks[..]) {
            Some([block]) => block,
            _ => return self.refuse(op, format!("a region of `{}` branches", op.row.name)),
        };
        match block.ops.split_last() {
            Some((last, body)) if last.row.name == end => Ok((block, last, body)),
            _ => self.error(op, Code::BadTerminator, format!("a region of `{}` does not end in `{end}`", op.row.name)),
        }
    }

    fn ops(&mut self, ops: &[Op]) -> Res<()> {
        ops.iter().try_for_each(|op| self.op(op))
    }

    fn results(&self, op: &Op) -> Res<Vec<Type>> {
        (0..op.results.len()).map(|i| self.gives(op, i).map(Type::Tile)).collect()
    }

    fn bind_all(&mut self, op: &Op, made: &[ValueId]) -> Res<()> {
        (0..op.results.len()).zip(made).try_for_each(|(i, &v)| self.bind(op, i, v))
    }

    /// The token that a region starts from, if what it does needs one.
    fn before_region(&mut self, op: &Op) -> Option<ValueId> {
        if !op.regions.iter().any(has_effect) {
            return None;
        }
        let token = self.after_all();
        self.did_write(token);
        Some(token)
    }

    /// The values that end a region, with a token where one is carried.
    fn with_token(&mut self, mut values: Vec<ValueId>, carried: bool) -> Vec<ValueId> {
        if carried {
            let token = self.after_all();
            values.push(token);
        }
        values
    }

    pub fn if_op(&mut self, op: &Op) -> Res<()> {
        let cond = self.arg(op, 0)?;
        let mut types = self.results(op)?;
        let token = self.before_region(op);
        if token.is_some() {
            types.push(Type::Token);
        }
        let id = self.open(Opcode::If, &[&[cond]], vec![]);
        let mut regions = vec![];
        let order = self.order.clone();
        for i in 0..2 {
            let region = op.regions.get(i);
            if region.is_none() && types.is_empty() {
                break;
            }
            regions.push(self.side(|c| {
                let mut values = vec![];
                // An empty region yields nothing.
                if let Some(region) = region.filter(|r| r.blocks.iter().any(|b| !b.ops.is_empty())) {
                    let (_, last, body) = c.block(op, Some(region), "scf.yield").or_else(|d| c.implicit(region, d))?;
                    c.ops(body)?;
                    if last.row.name == "scf.yield" {
                        values = c.args(last)?;
                    }
                }
                c.at(op);
                let values = c.with_token(values, token.is_some());
                c.emit(Opcode::Yield, &[&values], vec![], vec![]);
                Ok(())
            })?);
            self.order = order.clone();
        }
        let made = self.close(id, regions, types);
        if let (true, Some(&after)) = (token.is_some(), made.last()) {
            self.did_write(after);
        }
        self.bind_all(op, &made)
    }

    /// A block whose `scf.yield` of nothing is not printed.
    fn implicit<'r>(&self, region: &'r ast::Region, otherwise: Box<Diagnostic>) -> Res<(&'r Block, &'r Op, &'r [Op])> {
        match &region.blocks[..] {
            [block] => match block.ops.last() {
                Some(last) => Ok((block, last, &block.ops)),
                None => Err(otherwise),
            },
            _ => Err(otherwise),
        }
    }

    pub fn for_op(&mut self, op: &Op) -> Res<()> {
        let args = self.args(op)?;
        let [lower, upper, step, inits @ ..] = &args[..] else {
            return self.error(op, Code::OperandCount, "`scf.for` has two bounds and a step");
        };
        let mut types = self.results(op)?;
        let token = self.before_region(op);
        let mut inits = inits.to_vec();
        if let Some(token) = token {
            types.push(Type::Token);
            inits.push(token);
        }
        let attrs = if op.attr("unsigned").is_some() { vec![(AttrKey::UnsignedCmp, Attr::Unit)] } else { vec![] };
        let id = self.open(Opcode::For, &[&[*lower], &[*upper], &[*step], &inits], attrs);
        let blocks = op.regions.first().map(|r| r.blocks.as_slice()).unwrap_or(&[]);
        let params = blocks.first().map(|b| b.args.as_slice()).unwrap_or(&[]);
        let region = self.func.regions.push(Region::default());
        let outer = std::mem::replace(&mut self.region, region);
        self.params(op, region, params)?;
        if token.is_some() {
            let carried = self.argument(region, Type::Token, None, op.span);
            self.did_write(carried);
        }
        let mut values = vec![];
        if blocks.iter().any(|b| !b.ops.is_empty()) {
            let found = self.block(op, op.regions.first(), "scf.yield");
            let (_, last, body) = match (found, op.regions.first()) {
                (Err(d), Some(region)) if op.results.is_empty() => self.implicit(region, d)?,
                (found, _) => found?,
            };
            self.ops(body)?;
            if last.row.name == "scf.yield" {
                values = self.args(last)?;
            }
        }
        self.at(op);
        let values = self.with_token(values, token.is_some());
        self.emit(Opcode::Continue, &[&values], vec![], vec![]);
        self.region = outer;
        let made = self.close(id, vec![region], types);
        if let (true, Some(&after)) = (token.is_some(), made.last()) {
            self.did_write(after);
        }
        self.bind_all(op, &made)
    }

    fn params(&mut self, op: &Op, region: RegionId, params: &[V]) -> Res<()> {
        for &v in params {
            let value = &self.module.values[v];
            let ty = tile(&value.ty, op.span, &op.loc)?;
            let made = self.argument(region, Type::Tile(ty), Some(value.name.clone()), value.span);
            self.values[v.index()] = Some(made);
        }
        Ok(())
    }

    /// `loop`: what comes before, a `break` unless the condition holds, and the body.
    pub fn while_op(&mut self, op: &Op) -> Res<()> {
        let mut inits = self.args(op)?;
        let mut types = self.results(op)?;
        let token = self.before_region(op);
        if let Some(token) = token {
            types.push(Type::Token);
            inits.push(token);
        }
        let (before, condition, test) = self.block(op, op.regions.first(), "scf.condition")?;
        let (after, end, body) = self.block(op, op.regions.get(1), "scf.yield")?;
        let id = self.open(Opcode::Loop, &[&inits], vec![]);
        let region = self.func.regions.push(Region::default());
        let outer = std::mem::replace(&mut self.region, region);
        self.params(op, region, &before.args)?;
        if token.is_some() {
            let carried = self.argument(region, Type::Token, None, op.span);
            self.did_write(carried);
        }
        self.ops(test)?;
        let mut passed = self.args(condition)?;
        if passed.is_empty() || passed.len() != after.args.len() + 1 {
            return self.error(condition, Code::OperandCount, "`scf.condition` passes another number of values");
        }
        self.at(condition);
        let go_on = passed.remove(0);
        let leaving = self.with_token(passed.clone(), token.is_some());
        if let (true, Some(&last)) = (token.is_some(), leaving.last()) {
            self.did_write(last);
        }
        let test = self.open(Opcode::If, &[&[go_on]], vec![]);
        let stay = self.side(|c| {
            c.emit(Opcode::Yield, &[&[]], vec![], vec![]);
            Ok(())
        })?;
        let leave = self.side(|c| {
            c.emit(Opcode::Break, &[&leaving], vec![], vec![]);
            Ok(())
        })?;
        self.close(test, vec![stay, leave], vec![]);
        for (&arg, &v) in after.args.iter().zip(&passed) {
            self.values[arg.index()] = Some(v);
        }
        self.ops(body)?;
        let values = self.args(end)?;
        self.at(op);
        let values = self.with_token(values, token.is_some());
        self.emit(Opcode::Continue, &[&values], vec![], vec![]);
        self.region = outer;
        let made = self.close(id, vec![region], types);
        if let (true, Some(&after)) = (token.is_some(), made.last()) {
            self.did_write(after);
        }
        self.bind_all(op, &made)
    }

    /// A loop that reads through pointers until all elements are those expected.
    pub(super) fn poll(&mut self, ptr: ValueId, expected: ValueId, attrs: Vec<(AttrKey, Attr)>) {
        let before = self.after_all();
        let id = self.open(Opcode::Loop, &[&[before]], vec![]);
        let region = self.func.regions.push(Region::default());
        let outer = std::mem::replace(&mut self.region, region);
        let token = self.argument(region, Type::Token, None, self.span);
        let ty = self.tile_ty(expected).clone();
        let groups: [&[ValueId]; 4] = [&[ptr], &[], &[], &[token]];
        let made = self.emit(Opcode::LoadPtrTko, &groups, attrs, vec![Type::Tile(ty.clone()), Type::Token]);
        let mut equal = self.integers_compare(crate::num::op::Predicate::Equal, Signedness::Signed, made[0], expected);
        if !ty.shape.is_empty() {
            equal = self.reshaped(equal, &[ty.elements()]);
            equal = self.folded(Opcode::AndI, equal, 0);
        }
        let test = self.open(Opcode::If, &[&[equal]], vec![]);
        let sides = [(Opcode::Break, vec![made[1]]), (Opcode::Yield, vec![])].map(|(opcode, values)| {
            let side = self.func.regions.push(Region::default());
            let inner = std::mem::replace(&mut self.region, side);
            self.emit(opcode, &[&values], vec![], vec![]);
            self.region = inner;
            side
        });
        self.close(test, sides.to_vec(), vec![]);
        self.emit(Opcode::Continue, &[&[made[1]]], vec![], vec![]);
        self.region = outer;
        let after = self.close(id, vec![region], vec![Type::Token]);
        self.did_write(after[0]);
    }

    /// A call of a function that is not inlined: it is expanded where it is called.
    pub fn call(&mut self, op: &Op) -> Res<()> {
        let args = self.args(op)?;
        let Some(callee) = op.text("callee") else { return self.refuse(op, "a call names no function") };
        let types = self.results(op)?;
        let attrs = vec![(AttrKey::Callee, Attr::Str(callee.to_string()))];
        let made = self.emit(Opcode::ExpCall, &[&args], attrs, types);
        self.bind_all(op, &made)
    }
}

fn has_effect(region: &ast::Region) -> bool {
    let mut ops = region.blocks.iter().flat_map(|b| &b.ops);
    ops.any(|op| op.row.effect || op.regions.iter().any(has_effect))
}
