//! Structured control flow, calls, and blocks that branch.
//!
//! Early returns are branches between blocks. They become `if`s: the two sides of a conditional branch go up to the first
//! block that both reach, whose arguments the `if` gives.

use std::collections::BTreeSet;

use super::*;
use crate::num::op::Predicate;
use crate::ttir::ast::{Block, Successor};

/// Blocks that one function may be written out as, for each that it has.
const COPIES: usize = 8;

/// The place behind all blocks, where values that a region gives meet.
const END: usize = usize::MAX;

/// Blocks of a function that are written as `if`s.
struct Flow<'r> {
    region: &'r ast::Region,
    /// The blocks that each block reaches, itself among them.
    reach: Vec<BTreeSet<usize>>,
    left: usize,
    /// How many `if`s stand around what is being written.
    depth: usize,
    /// The types of what the region gives; `None` where its ends leave the kernel.
    gives: Option<Vec<Type>>,
    /// The values that it gives, once all is written.
    given: Vec<ValueId>,
}

impl Flow<'_> {
    /// Returns true if every way from a block to an end of the region goes through another.
    fn passes(&self, from: usize, through: usize) -> bool {
        let (mut seen, mut rest) = (BTreeSet::new(), vec![from]);
        while let Some(at) = rest.pop() {
            if at == through || !seen.insert(at) {
                continue;
            }
            match self.region.blocks.get(at).and_then(|b| b.ops.last()) {
                Some(last) if !last.successors.is_empty() => rest.extend(last.successors.iter().map(|(to, _)| to)),
                _ => return false,
            }
        }
        true
    }
}

impl<'m> Conv<'m> {
    /// The body of the function.
    pub(super) fn body(&mut self, region: &ast::Region) -> Res<()> {
        if self.func.results.is_empty() {
            return self.region(region, None).map(drop);
        }
        let values = self.region(region, Some(self.func.results.clone()))?;
        self.emit(Opcode::Return, &[&values], vec![], vec![]);
        Ok(())
    }

    /// Writes a region's blocks here; the values that it gives, of these types.
    pub(super) fn region(&mut self, region: &ast::Region, gives: Option<Vec<Type>>) -> Res<Vec<ValueId>> {
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
        let stop = gives.as_ref().map(|_| END);
        let mut flow = Flow { region, reach, left: COPIES * n + 64, depth: 0, gives, given: vec![] };
        self.flow(&mut flow, 0, stop)?;
        Ok(flow.given)
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
            ("tt.return" | "tt.map_elementwise.return" | "tt.reduce.return" | "tt.scan.return", []) => {
                let values = self.args(last)?;
                if flow.gives.is_some() {
                    return self.give(flow, last, &values);
                }
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
            return self.give(flow, op, &values);
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

    /// Ends a region of an `if`, with its values and the token of what was done; outside of them, the region of the flow.
    fn give(&mut self, flow: &mut Flow<'_>, op: &Op, values: &[ValueId]) -> Res<()> {
        if flow.depth == 0 {
            if flow.gives.as_ref().map(Vec::len) != Some(values.len()) {
                return self.error(op, Code::ResultCount, "the function gives another number of values");
            }
            flow.given = values.to_vec();
            return Ok(());
        }
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
        let mut first = both.iter().copied().find(|&j| both.iter().all(|k| flow.reach[j].contains(k)));
        if flow.gives.is_some() {
            // Where one side ends before that block, both are written to their ends.
            first = first.filter(|&j| flow.passes(yes.0, j) && flow.passes(no.0, j));
        } else if first.is_none() && !both.is_empty() {
            return self.refuse(op, "the branches of this function cannot be written as nested conditions");
        }
        let join = first.or(stop);
        let Some(join) = join else {
            // Both sides return.
            let id = self.open(Opcode::If, &[&[cond]], vec![]);
            let mut regions = vec![];
            for side in [yes, no] {
                let order = self.order.clone();
                regions.push(self.within(flow, op, side, None)?);
                self.order = order;
            }
            self.close(id, regions, vec![]);
            self.emit(Opcode::Return, &[&[]], vec![], vec![]);
            return Ok(());
        };
        let mut types = match (join, &flow.gives) {
            (END, Some(types)) => types.clone(),
            _ => {
                let args = flow.region.blocks.get(join).map(|b| b.args.as_slice()).unwrap_or_default();
                let types = args.iter().map(|&v| tile(&self.module.values[v].ty, op.span, &op.loc).map(Type::Tile));
                types.collect::<Res<Vec<_>>>()?
            }
        };
        types.push(Type::Token);
        let before = self.after_all();
        self.did_write(before);
        let id = self.open(Opcode::If, &[&[cond]], vec![]);
        let mut regions = vec![];
        for side in [yes, no] {
            let order = self.order.clone();
            regions.push(self.within(flow, op, side, Some(join))?);
            self.order = order;
        }
        let made = self.close(id, regions, types);
        let Some((&token, values)) = made.split_last() else { return Ok(()) };
        self.did_write(token);
        if stop == Some(join) {
            return self.give(flow, op, values);
        }
        self.enter(flow, op, join, values)?;
        self.flow(flow, join, stop)
    }

    /// One side of a branch, as a region of an `if`.
    fn within(&mut self, flow: &mut Flow<'_>, op: &Op, to: &Successor, stop: Option<usize>) -> Res<RegionId> {
        flow.depth += 1;
        let done = self.side(|c| c.go(flow, op, to, stop));
        flow.depth -= 1;
        done
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

    /// A loop of `n` rounds. `body` is given the number of a round and what is carried, and gives what is carried on.
    pub(super) fn rounds(
        &mut self,
        n: u64,
        mut carried: Vec<ValueId>,
        body: impl FnOnce(&mut Self, ValueId, &[ValueId]) -> Res<Vec<ValueId>>,
    ) -> Res<Vec<ValueId>> {
        let bounds = [0, n, 1].map(|i| self.fill(&[], DType::I32, i));
        let mut types: Vec<Type> = carried.iter().map(|&v| Type::Tile(self.tile_ty(v).clone())).collect();
        types.push(Type::Token);
        let token = self.after_all();
        carried.push(token);
        let id = self.open(Opcode::For, &[&bounds[..1], &bounds[1..2], &bounds[2..], &carried], vec![]);
        let region = self.func.regions.push(Region::default());
        let outer = std::mem::replace(&mut self.region, region);
        let round = self.argument(region, Type::scalar(DType::I32), None, self.span);
        let args: Vec<ValueId> = types.iter().map(|ty| self.argument(region, ty.clone(), None, self.span)).collect();
        if let Some((&token, args)) = args.split_last() {
            self.did_write(token);
            let values = body(self, round, args)?;
            let values = self.with_token(values, true);
            self.emit(Opcode::Continue, &[&values], vec![], vec![]);
        }
        self.region = outer;
        let mut made = self.close(id, vec![region], types);
        if let Some(token) = made.pop() {
            self.did_write(token);
        }
        Ok(made)
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

    /// A loop that reads through a pointer until it finds what is expected, or has read more often than `limit` says; whether it
    /// found that.
    pub(super) fn poll(
        &mut self,
        ptr: ValueId,
        expected: ValueId,
        limit: Option<ValueId>,
        attrs: Vec<(AttrKey, Attr)>,
    ) -> ValueId {
        let before = self.after_all();
        let inits = match limit {
            Some(limit) => vec![limit, before],
            None => vec![before],
        };
        let id = self.open(Opcode::Loop, &[&inits], vec![]);
        let region = self.func.regions.push(Region::default());
        let outer = std::mem::replace(&mut self.region, region);
        let left = limit.map(|_| self.argument(region, Type::scalar(DType::I64), None, self.span));
        let token = self.argument(region, Type::Token, None, self.span);
        let ty = self.tile_ty(expected).clone();
        let groups: [&[ValueId]; 4] = [&[ptr], &[], &[], &[token]];
        let made = self.emit(Opcode::LoadPtrTko, &groups, attrs, vec![Type::Tile(ty.clone()), Type::Token]);
        let mut equal = self.integers_compare(Predicate::Equal, Signedness::Signed, made[0], expected);
        if !ty.shape.is_empty() {
            equal = self.reshaped(equal, &[ty.elements()]);
            equal = self.folded(Opcode::AndI, equal, 0);
        }
        let mut ends = equal;
        let mut next = vec![made[1]];
        if let Some(left) = left {
            let (zero, one) = (self.fill(&[], DType::I64, 0), self.fill(&[], DType::I64, 1));
            let over = self.integers_compare(Predicate::LessThanOrEqual, Signedness::Signed, left, zero);
            ends = self.same(Opcode::OrI, &[equal, over]);
            let less = self.same(Opcode::SubI, &[left, one]);
            next.insert(0, less);
        }
        let test = self.open(Opcode::If, &[&[ends]], vec![]);
        let sides = [(Opcode::Break, vec![equal, made[1]]), (Opcode::Yield, vec![])].map(|(opcode, values)| {
            let side = self.func.regions.push(Region::default());
            let inner = std::mem::replace(&mut self.region, side);
            self.emit(opcode, &[&values], vec![], vec![]);
            self.region = inner;
            side
        });
        self.close(test, sides.to_vec(), vec![]);
        self.emit(Opcode::Continue, &[&next], vec![], vec![]);
        self.region = outer;
        let made = self.close(id, vec![region], vec![Type::scalar(DType::I1), Type::Token]);
        self.did_write(made[1]);
        made[0]
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
