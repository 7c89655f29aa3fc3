//! Statements one lane at a time: the plain form of every statement, and the statements inside a lane loop.

use super::slots::own_shape;
use super::{Loc, Lower, Res, Storage, ty};
use crate::index::{Facts, simplify};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::print::place_text;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};

impl Lower<'_> {
    /// A scalar operand; inside a lane loop a vector gives its lane.
    pub(super) fn scalar(&mut self, opnd: &l::Opnd) -> Res<k::Opnd> {
        let val = match opnd {
            l::Opnd::Const { dtype, bits } => return Ok(k::Opnd::Const { dtype: *dtype, bits: *bits }),
            l::Opnd::Val(val) => *val,
        };
        match self.loc(val)? {
            Loc::Scalar(o) => Ok(o),
            Loc::Vector(vector) => self.extract(vector),
        }
    }

    pub(super) fn extract(&mut self, vector: k::ValId) -> Res<k::Opnd> {
        if let Some(o) = self.extracted.get(&vector) {
            return Ok(*o);
        }
        let lane = self.lane.clone().ok_or("a value that differs between lanes is used as one value")?;
        let (name, elem) = {
            let v = &self.out.vals[vector];
            (format!("{}_l", v.name), v.ty.elem)
        };
        let dst = self.value(&name, k::Ty { elem, lanes: 1 });
        self.push(k::Stmt::Lane { dst, vector, lane });
        self.extracted.insert(vector, k::Opnd::Val(dst));
        Ok(k::Opnd::Val(dst))
    }

    pub(super) fn ix(&mut self, ix: &l::Ix) -> Res<k::Ix> {
        let mut failed = None;
        let out = ix.replace_leaves(&mut |leaf| {
            let done = match leaf {
                l::Ix::Axis(a) => match (self.axes.get(a), self.numbers.get(a)) {
                    (Some(ix), _) => Ok(ix.clone()),
                    (None, Some(val)) => self.ix_of(*val, false),
                    (None, None) => Err(format!("axis {} is used outside its loop", a.0)),
                },
                l::Ix::Val { val, zext } => self.ix_of(*val, *zext),
                _ => return None,
            };
            done.map_err(|e| failed = Some(e)).ok()
        });
        failed.map_or(Ok(out), Err)
    }

    fn ix_of(&mut self, val: l::ValId, zext: bool) -> Res<k::Ix> {
        self.scalar(&l::Opnd::Val(val)).map(|o| match o {
            k::Opnd::Val(val) => k::Ix::Val { val, zext },
            k::Opnd::Const { dtype, bits } => k::Ix::Const(constant(dtype, bits, zext)),
        })
    }

    pub(super) fn mask(&mut self, mask: &l::Mask) -> Res<k::Mask> {
        let mut out = k::Mask::default();
        for cond in &mask.conds {
            out.conds.push(self.cond(cond)?);
        }
        for &val in &mask.vals {
            self.mask_val(&mut out, val)?;
        }
        Ok(out)
    }

    pub(super) fn cond(&mut self, cond: &l::Cond) -> Res<k::Cond> {
        Ok(k::Cond { lhs: self.ix(&cond.lhs)?, cmp: cond.cmp, rhs: self.ix(&cond.rhs)? })
    }

    pub(super) fn mask_val(&mut self, out: &mut k::Mask, val: l::ValId) -> Res<()> {
        match self.scalar(&l::Opnd::Val(val))? {
            k::Opnd::Val(v) => out.vals.push(v),
            k::Opnd::Const { bits: 0, .. } => {
                out.conds.push(k::Cond { lhs: k::Ix::Const(0), cmp: k::Cmp::Ne, rhs: k::Ix::Const(0) });
            }
            k::Opnd::Const { .. } => {}
        }
        Ok(())
    }

    pub(super) fn place(&mut self, mem: &l::Mem) -> Res<k::Address> {
        let base = self.base(mem)?;
        Ok(k::Address::Mem { base, index: self.ix(&mem.index)?, elem: mem.elem })
    }

    pub(super) fn base(&mut self, mem: &l::Mem) -> Res<k::ValId> {
        match self.scalar(&l::Opnd::Val(mem.base))? {
            k::Opnd::Val(base) => Ok(base),
            constant => {
                let t = k::Ty { elem: k::Elem::Ptr(mem.elem), lanes: 1 };
                let base = self.value("address", t);
                self.push(k::Stmt::Let { dst: base, op: ScalarOp::Copy, ty: t.elem, args: vec![constant] });
                Ok(base)
            }
        }
    }

    /// The linear element of an access of a local buffer.
    pub(super) fn linear(&self, id: l::BufId, idx: &[l::Ix]) -> Res<l::Ix> {
        let buf = self.buf(id)?;
        if idx.len() != buf.shape.len() {
            return Err(format!("buffer {} has {} dimensions, not {}", buf.name, buf.shape.len(), idx.len()));
        }
        let own = own_shape(buf);
        let (threads, idx) = idx.split_at(idx.len() - own.len());
        let mine = |ix: &l::Ix| matches!(ix, l::Ix::Axis(a) if self.axes.get(a) == Some(&k::Ix::Thread));
        if !threads.iter().all(mine) {
            return Err(format!("buffer {} is private, and a thread touches another one's part", buf.name));
        }
        let within = l::Ix::row_major(idx, own);
        Ok(match self.generations.get(&id) {
            None => within,
            Some((iteration, depth)) => {
                let generation = l::Ix::modulo(iteration.clone(), l::Ix::Const((*depth).into()));
                l::Ix::add(l::Ix::mul(generation, l::Ix::Const(own.iter().product::<u64>() as i64)), within)
            }
        })
    }

    /// The place of an element of a buffer in a slot, by its linear index.
    pub(super) fn place_in(&mut self, id: l::BufId, slot: k::BufId, linear: &l::Ix) -> Res<k::Address> {
        let (swizzle, bytes) = self.buf(id).map(|b| (i64::from(b.swizzle), b.element_bytes() as i64))?;
        if swizzle == 0 {
            return Ok(k::Address::Slot { buf: slot, index: self.ix(linear)? });
        }
        // The pieces of a row are exchanged by the row's number: rows lie at multiples of 128 bytes.
        let (at, facts) = (l::Ix::Const, self.nest_facts());
        let line = l::Ix::floor_div(linear.clone(), at(128 / bytes));
        let piece = l::Ix::mul(l::Ix::modulo(line, at(swizzle / 16)), at(16 / bytes));
        let within = simplify(&l::Ix::modulo(linear.clone(), at(swizzle / bytes)), &facts);
        let row =
            simplify(&l::Ix::mul(l::Ix::floor_div(linear.clone(), at(swizzle / bytes)), at(swizzle / bytes)), &facts);
        let within = self.ix(&within)?;
        let within = self.index_of("within", within);
        let piece = self.ix(&simplify(&piece, &facts))?;
        let piece = self.index_of("piece", piece);
        let dst = self.value("moved", k::Ty::num(DType::I32, 1));
        let (op, ty) = (ScalarOp::Xor, k::Elem::Num(DType::I32));
        self.push(k::Stmt::Let { dst, op, ty, args: vec![k::Opnd::Val(within), k::Opnd::Val(piece)] });
        let index = k::Ix::add(self.ix(&row)?, k::Ix::val(dst));
        Ok(k::Address::Slot { buf: slot, index })
    }

    /// The facts that the enclosing loops give about their axes.
    fn nest_facts(&self) -> Facts {
        let mut facts = self.src.facts();
        for (axis, lo, n) in &self.nest {
            facts.set_axis(*axis, lo, &l::Ix::add(lo.clone(), l::Ix::Const(*n as i64)));
        }
        facts
    }

    fn index_of(&mut self, name: &str, ix: k::Ix) -> k::ValId {
        let dst = self.value(name, k::Ty::num(DType::I32, 1));
        self.push(k::Stmt::Index { dst, ix });
        dst
    }

    pub(super) fn storage(&self, buf: l::BufId) -> Res<Storage> {
        self.storage.get(&buf).copied().ok_or_else(|| format!("buffer {} is used before it is declared", buf.0))
    }

    /// A fresh scalar for a value of loop IR.
    pub(super) fn define(&mut self, val: l::ValId) -> Res<k::ValId> {
        let t = ty(self.src_ty(val)?, 1);
        let name = self.src.vals[val].name.clone();
        let dst = self.value(&name, t);
        self.vals.insert(val, Loc::Scalar(k::Opnd::Val(dst)));
        Ok(dst)
    }

    /// The type an operation is applied at: that of its first operand, or of the second for a selection.
    pub(super) fn op_elem(&self, op: ScalarOp, args: &[l::Opnd]) -> Res<k::Elem> {
        let arg = args.get(op.typed_by()).ok_or("an operation has no operands")?;
        match arg {
            l::Opnd::Const { dtype, .. } => Ok(k::Elem::Num(*dtype)),
            l::Opnd::Val(v) => Ok(self.src_ty(*v)?),
        }
    }

    pub(super) fn element(&mut self) -> Res<Option<k::Ix>> {
        if self.nest.is_empty() {
            return Ok(None);
        }
        let mut sum = k::Ix::Const(0);
        for (axis, lo, extent) in self.nest.clone() {
            let at = k::Ix::sub(self.ix(&l::Ix::Axis(axis))?, self.ix(&lo)?);
            sum = k::Ix::add(k::Ix::mul(sum, k::Ix::Const(extent as i64)), at);
        }
        Ok(Some(sum))
    }

    pub(super) fn check(
        &mut self,
        mem: &l::Mem,
        place: &k::Address,
        count: u32,
        mask: &k::Mask,
        write: bool,
        site: l::SiteId,
    ) -> Res<()> {
        if self.options.check {
            let param = self.param_of.get(&mem.base).copied();
            // Loops were split and interchanged, so the iteration no longer gives the element; the address gives the
            // index.
            let (place, mask) = (place.clone(), mask.clone());
            self.push(k::Stmt::Check { place, count, mask, write, param, element: None, site });
        }
        Ok(())
    }

    pub(super) fn scalar_stmt(&mut self, stmt: &l::Stmt) -> Res<()> {
        match stmt {
            l::Stmt::Let { dst, op, args } => {
                let at = self.op_elem(*op, args)?;
                let operands = args.iter().map(|a| self.scalar(a)).collect::<Res<Vec<_>>>()?;
                if *op == ScalarOp::PtrAdd
                    && let Some(l::Opnd::Val(p)) = args.first()
                    && let Some(&param) = self.param_of.get(p)
                {
                    self.param_of.insert(*dst, param);
                }
                let dst = self.define(*dst)?;
                self.push(k::Stmt::Let { dst, op: *op, ty: at, args: operands });
            }
            l::Stmt::Index { dst, ix } => {
                let ix = self.ix(ix)?;
                let dst = self.define(*dst)?;
                self.push(k::Stmt::Index { dst, ix });
            }
            l::Stmt::Test { dst, mask } => {
                let mask = self.mask(mask)?;
                let dst = self.define(*dst)?;
                self.push(k::Stmt::Test { dst, mask });
            }
            l::Stmt::Load { dst, mem, mask, other, order, site } => {
                let mask = self.mask(mask)?;
                let place = self.place(mem)?;
                let other = other.as_ref().map(|o| self.scalar(o)).transpose()?;
                self.check(mem, &place, 1, &mask, false, *site)?;
                let dst = self.define(*dst)?;
                self.push(k::Stmt::Load { dst, place, mask, other, order: *order });
            }
            l::Stmt::Prefetch { mem } => {
                let place = self.place(mem)?;
                self.push(k::Stmt::Prefetch { place });
            }
            l::Stmt::Store { mem, value, mask, order, site } => {
                let mask = self.mask(mask)?;
                let place = self.place(mem)?;
                let value = self.scalar(value)?;
                self.check(mem, &place, 1, &mask, true, *site)?;
                self.push(k::Stmt::Store { place, value, mask, order: *order });
            }
            l::Stmt::Read { dst, buf, idx } => self.read(*dst, *buf, idx)?,
            l::Stmt::Write { buf, idx, value } => {
                let value = self.scalar(value)?;
                self.write(*buf, idx, value)?;
            }
            l::Stmt::Local { buf } => self.local(*buf, 1)?,
            l::Stmt::For(f) => self.for_stmt(f)?,
            l::Stmt::Loop { body } => {
                let nest = std::mem::take(&mut self.nest);
                let waits = std::mem::replace(&mut self.waits, atomic_site(body));
                let inner = self.inner(|s| {
                    s.poll();
                    s.run(body)?;
                    s.wait();
                    Ok(())
                })?;
                self.waits = waits;
                self.nest = nest;
                self.push(k::Stmt::Loop { body: inner });
            }
            l::Stmt::Break => self.push(k::Stmt::Break),
            l::Stmt::Continue => {
                self.wait();
                self.push(k::Stmt::Continue);
            }
            l::Stmt::Return => self.push(k::Stmt::Return),
            l::Stmt::If { cond, then, els } => {
                let mask = match self.scalar(cond)? {
                    k::Opnd::Val(v) => k::Mask { conds: vec![], vals: vec![v] },
                    k::Opnd::Const { bits, .. } => {
                        return self.run(if bits != 0 { then } else { els });
                    }
                };
                let then = self.block(then)?;
                let els = self.block(els)?;
                self.push(k::Stmt::If { mask, then, els });
            }
            l::Stmt::Rmw { dst, op, mem, value, mask, order, site } => {
                let mask = self.mask(mask)?;
                let place = self.place(mem)?;
                let value = self.scalar(value)?;
                self.check(mem, &place, 1, &mask, true, *site)?;
                let dst = self.define(*dst)?;
                self.push(k::Stmt::Rmw { dst, op: *op, place, value, mask, order: *order });
            }
            l::Stmt::Cas { dst, mem, cmp, value, mask, order, site } => {
                let mask = self.mask(mask)?;
                let place = self.place(mem)?;
                let cmp = self.scalar(cmp)?;
                let value = self.scalar(value)?;
                self.check(mem, &place, 1, &mask, true, *site)?;
                let dst = self.define(*dst)?;
                self.push(k::Stmt::Cas { dst, place, cmp, value, mask, order: *order });
            }
            l::Stmt::Print { format, args, site } => {
                let mut out = Vec::new();
                for arg in args {
                    out.push(match arg {
                        l::PrintArg::Scalar(o) => k::PrintArg::Scalar(self.scalar(o)?),
                        l::PrintArg::Buf(b) => match self.storage(*b)? {
                            Storage::Slot(slot) => k::PrintArg::Tile { slot, shape: self.src.bufs[*b].shape.clone() },
                            Storage::Var(var) => k::PrintArg::Scalar(k::Opnd::Val(var)),
                            Storage::Registers(_) => return Err("registers cannot be printed".to_string()),
                        },
                    });
                }
                self.push(k::Stmt::Print { format: k::Quoted::new(format), args: out, site: *site });
            }
            l::Stmt::Assert { cond, message, site } => {
                let cond = self.scalar(cond)?;
                let element = self.element()?;
                self.push(k::Stmt::Assert { cond, message: k::Quoted::new(message), element, site: *site });
            }
            l::Stmt::GlobalAddr { dst, global } => {
                let dst = self.define(*dst)?;
                self.push(k::Stmt::GlobalAddr { dst, global: *global });
            }
            l::Stmt::Alloca { dst, .. } => {
                let offset = self.slots.next_alloca().ok_or("an alloca has no place in the block's memory")?;
                let (dst, offset) = (self.define(*dst)?, k::Ix::Const(offset as i64));
                self.push(match self.out.threads {
                    1 => k::Stmt::Scratch { dst, offset },
                    _ => k::Stmt::SharedAddr { dst, offset },
                });
            }
            l::Stmt::Stage { filled: l::Filled::Async | l::Filled::Tma, .. } => {
                return Err("a stage that is filled asynchronously must begin a pipeline's body".to_string());
            }
            l::Stmt::Stage { buf, body, .. } => {
                self.local(*buf, 1)?;
                self.run(body)?;
            }
        }
        Ok(())
    }

    /// Declares a buffer; a scalar variable gets `lanes` lanes.
    pub(super) fn local(&mut self, buf: l::BufId, lanes: u32) -> Res<()> {
        let b = self.buf(buf)?;
        if let l::Space::Register { lanes } = b.space {
            return self.local_registers(buf, lanes);
        }
        if b.shape.is_empty() {
            let var = self.value(&b.name, ty(b.ty, lanes));
            let init = zero(b.ty);
            self.push(k::Stmt::Var { var, init });
            self.storage.insert(buf, Storage::Var(var));
        } else {
            let generations = self.generations.get(&buf).map_or(1, |(_, depth)| u64::from(*depth));
            let len = own_shape(b).iter().product::<u64>() * generations;
            let name = self.names.fresh(&b.name);
            let offset = self.slots.offset(buf);
            let space = match b.space {
                l::Space::Shared => k::Space::Shared,
                l::Space::Kept { zeroed } => k::Space::Kept { zeroed },
                _ => k::Space::Scratch,
            };
            let slot = self.new_slot(k::Slot { name, space, elem: b.ty, len, offset });
            self.storage.insert(buf, Storage::Slot(slot));
        }
        Ok(())
    }

    fn read(&mut self, dst: l::ValId, buf: l::BufId, idx: &[l::Ix]) -> Res<()> {
        match self.storage(buf)? {
            Storage::Registers(registers) => {
                let var = self.register(buf, registers, idx)?;
                self.extracted.remove(&var);
                let value = self.extract(var)?;
                self.extracted.remove(&var);
                self.vals.insert(dst, Loc::Scalar(value));
            }
            Storage::Var(var) => {
                let t = self.out.vals[var].ty;
                if t.is_vector() {
                    // A variable may change between two reads, so the lane is read afresh.
                    self.extracted.remove(&var);
                    let value = self.extract(var)?;
                    self.extracted.remove(&var);
                    self.vals.insert(dst, Loc::Scalar(value));
                } else if self.vector.is_none() && self.aliases.contains(&dst) {
                    self.vals.insert(dst, Loc::Scalar(k::Opnd::Val(var)));
                } else {
                    let dst = self.define(dst)?;
                    self.push(k::Stmt::Let { dst, op: ScalarOp::Copy, ty: t.elem, args: vec![k::Opnd::Val(var)] });
                }
            }
            Storage::Slot(slot) => {
                let linear = self.linear(buf, idx)?;
                let place = self.place_in(buf, slot, &linear)?;
                let dst = self.define(dst)?;
                self.push(k::Stmt::Load { dst, place, mask: k::Mask::default(), other: None, order: k::Order::Weak });
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, buf: l::BufId, idx: &[l::Ix], value: k::Opnd) -> Res<()> {
        match self.storage(buf)? {
            Storage::Registers(registers) => {
                let vector = self.register(buf, registers, idx)?;
                let lane = self.lane.clone().ok_or("a register is written as one value")?;
                self.push(k::Stmt::SetLane { vector, lane, value });
            }
            Storage::Var(var) => match (self.out.vals[var].ty.is_vector(), self.lane.clone()) {
                (true, Some(lane)) => self.push(k::Stmt::SetLane { vector: var, lane, value }),
                (true, None) => return Err("a variable that differs between lanes is written as one value".to_string()),
                (false, _) => self.push(k::Stmt::Set { var, value }),
            },
            Storage::Slot(slot) => {
                let linear = self.linear(buf, idx)?;
                let place = self.place_in(buf, slot, &linear)?;
                self.push(k::Stmt::Store { place, value, mask: k::Mask::default(), order: k::Order::Weak });
            }
        }
        Ok(())
    }

    /// At the end of an iteration that another may follow: lets other blocks run that this one may be waiting for.
    fn wait(&mut self) {
        if let (Some(site), 1) = (self.waits, self.out.threads) {
            self.push(k::Stmt::Yield { site });
        }
    }

    /// On a worker of the pool, which shares a core: checks if the run is to stop.
    fn poll(&mut self) {
        if self.out.threads == 1 {
            self.push(k::Stmt::Poll);
        }
    }

    /// Polls in every [`POLL_EVERY`]th iteration of a loop.
    fn poll_seldom(&mut self, axis: k::AxisId) {
        if self.out.threads == 1 {
            let now = k::Cond::new(
                k::Ix::modulo(k::Ix::Axis(axis), k::Ix::Const(POLL_EVERY as i64)),
                k::Cmp::Eq,
                k::Ix::Const(0),
            );
            let mask = k::Mask { conds: vec![now], vals: vec![] };
            self.push(k::Stmt::If { mask, then: vec![k::Stmt::Poll], els: vec![] });
        }
    }

    fn for_stmt(&mut self, f: &l::For) -> Res<()> {
        if self.rounds.as_ref().is_some_and(|rounds| rounds.axis == f.axis) {
            return self.rounds_of_block(f);
        }
        match f.place {
            l::Place::Vector { lanes: 2.. } if self.vector.is_some() => {
                return Err(self.unplaced(f, "it is inside another vector loop"));
            }
            l::Place::Vector { lanes: lanes @ 2.. } if self.touches_registers(&f.body) => {
                return match f.kind {
                    l::LoopKind::Free => self.written_out(f, lanes),
                    l::LoopKind::Reduce if f.combine.is_some() => self.folded_registers(f, lanes),
                    _ => Err(self.unplaced(f, "it touches registers, and its iterations are not independent")),
                };
            }
            l::Place::Unroll if self.touches_registers(&f.body) => return self.written_out(f, 0),
            l::Place::Vector { lanes: lanes @ 2.. } => return self.vector_loop(f, lanes),
            l::Place::Vector { .. } => return Err(self.unplaced(f, "a vector must have at least two lanes")),
            l::Place::Block { .. } => return Err(self.unplaced(f, "loops over blocks must be outermost")),
            l::Place::Thread => return self.thread_loop(f),
            l::Place::ClusterBlock => return self.member_loop(f),
            l::Place::Pipeline { depth, roles: false, overlap } => return self.pipelined(f, depth, overlap),
            l::Place::Pipeline { depth, roles: true, overlap } => return self.specialised(f, depth, overlap),
            l::Place::Matrix if self.out.threads > 1 => return self.product(f),
            l::Place::Matrix => return self.product_of_tiles(f),
            l::Place::Lanes => return self.combined_by_lanes(f),
            l::Place::Warpgroup => return self.product_of_warpgroups(f),
            l::Place::Tcgen05 => return self.product_in_tensor_memory(f),
            l::Place::TmaStore => return self.store_boxes(f),
            l::Place::None | l::Place::Unroll => {}
        }
        let lo = self.ix(&f.lo)?;
        let hi = self.ix(&f.hi)?;
        self.scalar_loop(f, lo, hi)
    }

    /// The error that a loop cannot run as its place says.
    pub(super) fn unplaced(&self, f: &l::For, why: &str) -> String {
        let name = self.src.axes.get(f.axis).map_or("?", |a| a.name.as_str());
        format!("the loop {name} cannot be placed as {}: {why}", place_text(f.place))
    }

    /// The loop from `lo` to `hi`, one iteration at a time.
    pub(super) fn scalar_loop(&mut self, f: &l::For, lo: k::Ix, hi: k::Ix) -> Res<()> {
        let step = self.ix(&f.step)?;
        let trip = match (&lo, &hi, &step) {
            (k::Ix::Const(lo), k::Ix::Const(hi), k::Ix::Const(step)) if *step > 0 => {
                Some((hi.saturating_sub(*lo).max(0) as u64).div_ceil(*step as u64))
            }
            _ => None,
        };
        if trip == Some(0) {
            return Ok(());
        }
        let axis = self.axis_of(f.axis);
        let mut nest = self.nest.clone();
        match f.kind {
            l::LoopKind::Free | l::LoopKind::Reduce if trip.is_some() => {
                nest.push((f.axis, f.lo.clone(), trip.unwrap_or(1)))
            }
            _ => nest.clear(),
        }
        let serial = f.kind == l::LoopKind::Serial;
        // A loop over a tile's elements does not wait for other blocks.
        let site = if serial && trip.is_none() { atomic_site(&f.body) } else { None };
        let short = site.is_none() && f.step.is_const(1) && f.body.iter().all(|s| walk::bodies(s).is_empty());
        let waits = std::mem::replace(&mut self.waits, site);
        let body = self.at_axis(f.axis, k::Ix::Axis(axis), nest, |s| {
            s.inner(|s| {
                if serial && trip.is_none_or(|n| n > POLL_EVERY) {
                    if short { s.poll_seldom(axis) } else { s.poll() }
                }
                s.run(&f.body)?;
                s.wait();
                Ok(())
            })
        })?;
        self.waits = waits;
        let unroll = match (f.place, trip) {
            (l::Place::Unroll, Some(n)) if n <= MOST_COPIES => n as u32,
            (l::Place::Unroll, _) => {
                return Err(self.unplaced(f, "it has more than 64 iterations, or an unknown number"));
            }
            _ => 0,
        };
        self.push(k::Stmt::For { axis, lo, hi, step, unroll, body });
        Ok(())
    }
}

/// The most copies that an unrolled loop becomes; equal to the limit of the knob `unroll`.
const MOST_COPIES: u64 = 64;

/// Serial loops of at most this many iterations need not look at the abort flag. Others with a short body look once in this many: a look
/// in each cost a quarter of the time of a million additions to 64 bins.
const POLL_EVERY: u64 = 64;

pub(super) fn zero(elem: k::Elem) -> k::Opnd {
    let dtype = match elem {
        k::Elem::Num(d) => d,
        k::Elem::Ptr(_) => DType::I64,
    };
    k::Opnd::Const { dtype, bits: 0 }
}

/// An integer constant as an index.
fn constant(dtype: DType, bits: u64, zext: bool) -> i64 {
    if zext || dtype.bits() == 64 {
        return bits as i64;
    }
    let shift = 64 - dtype.bits();
    ((bits << shift) as i64) >> shift
}

/// The first atomic or ordered access in the statements: a loop that holds one may be waiting for another block.
fn atomic_site(body: &[l::Stmt]) -> Option<l::SiteId> {
    body.iter().find_map(|stmt| match stmt {
        l::Stmt::Rmw { site, .. } | l::Stmt::Cas { site, .. } => Some(*site),
        l::Stmt::Load { order, site, .. } | l::Stmt::Store { order, site, .. } => {
            (*order != l::Order::Weak).then_some(*site)
        }
        l::Stmt::For(f) => atomic_site(&f.body),
        l::Stmt::Loop { body } | l::Stmt::Stage { body, .. } => atomic_site(body),
        l::Stmt::If { then, els, .. } => atomic_site(then).or_else(|| atomic_site(els)),
        _ => None,
    })
}
