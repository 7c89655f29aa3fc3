//! Blocks, their stacks, and their turns; `control` executes regions.

use std::collections::{BTreeSet, VecDeque};

use super::code::Code as Tables;
use super::fold::{Fold, Program};
use super::order::{Order, Rng};
use super::race::{self, Shadow};
use super::value::{Origin, Tile, Val};
use super::{Host, Options, POLITE, Report, SLICE, WORK};
use crate::base::host::Waiting;
use crate::base::id::Id;
use crate::base::launch::{Launch, Trap, User};
use crate::base::memory::Memory;
use crate::base::{Budget, Code, Diagnostic, Frames, TooMuch};
use crate::cuda_tile::ir::*;

/// The data that all blocks of a run share.
pub struct Machine<'a> {
    pub module: &'a Module,
    pub launch: &'a Launch,
    pub memory: &'a mut dyn Memory,
    host: &'a mut dyn Host,
    options: &'a Options,
    pub tables: Tables,
    pub shadow: Shadow,
    /// The addresses of `module.globals`.
    pub globals: Vec<u64>,
    /// Regions allocated for this run: start, bytes, name.
    pub named: Vec<(u64, u64, String)>,
    /// Memory of allocas whose block has ended: bytes, alignment, address.
    pub free: Vec<(u64, u64, u64)>,
    /// Loads from views without padding that reached past the tensor.
    pub unpadded: BTreeSet<Origin>,
    polite: bool,
    steps: u64,
    /// Work of all blocks since the last check for an interrupt, in operations and elements of their results.
    work: u64,
    budget: Budget,
    /// The bytes of blocks that wait for their turn, and of allocas.
    waiting: u64,
    allocated: u64,
}

/// A block that runs or waits for its turn.
pub struct Block {
    pub id: [u32; 3],
    pub linear: u64,
    pub calls: Vec<Call>,
    pub out: String,
    /// Memory operations executed so far.
    pub accesses: u32,
    /// The memory of allocas: the depth of the call, the operation, bytes, alignment, address.
    pub allocas: Vec<(usize, OpId, u64, u64, u64)>,
}

/// One function activation.
pub struct Call {
    pub func: usize,
    pub env: Vec<Option<Val>>,
    /// The bytes of `env` and of the values in it.
    held: u64,
    pub(super) regions: Vec<Active>,
}

pub(super) struct Active {
    pub region: RegionId,
    pub next: usize,
    pub kind: Kind,
}

pub(super) enum Kind {
    Body,
    If(OpId),
    Loop(OpId),
    For { op: OpId, iv: i128, ub: i128, step: i128, unsigned: bool },
    Fold(Box<Fold>),
}

/// The operation being executed.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    pub func: &'a Func,
    pub findex: usize,
    pub id: OpId,
    pub op: &'a Op,
    pub block: [u32; 3],
    /// Blocks before this one in linear order.
    pub linear: u64,
    /// The number of this operation as an origin of poison.
    pub here: Origin,
}

/// The next action after an operation.
#[derive(PartialEq, Eq)]
pub(super) enum Step {
    Next,
    /// Another block's turn.
    Switch,
    Done,
}

impl Block {
    fn bytes(&self) -> u64 {
        self.calls.iter().map(|c| c.held).sum()
    }
}

/// Bytes for an element of a result while it is computed: its bits, its origin, and its source.
const ELEMENT: u64 = 24;
/// The deepest nesting of calls.
const CALLS: usize = 256;

impl<'a> Machine<'a> {
    pub fn new(
        module: &'a Module,
        launch: &'a Launch,
        memory: &'a mut dyn Memory,
        host: &'a mut dyn Host,
        options: &'a Options,
    ) -> Machine<'a> {
        let tables = Tables::new(module);
        let polite = tables.synchronises && launch.blocks() <= POLITE;
        Machine {
            module,
            launch,
            memory,
            host,
            options,
            tables,
            shadow: Shadow::new(options.races),
            globals: vec![],
            named: vec![],
            free: vec![],
            unpadded: BTreeSet::new(),
            polite,
            steps: 0,
            work: 0,
            budget: launch.budget.clone(),
            waiting: 0,
            allocated: 0,
        }
    }

    pub fn run(mut self, entry: usize) -> Result<Report, Trap> {
        self.place_globals();
        let order = Order::new(self.launch);
        let mut rng = Rng(self.launch.seed);
        let mut started = 0;
        let mut waiting: VecDeque<Block> = VecDeque::new();
        let total = order.len();
        loop {
            let mut block = if started < total {
                started += 1;
                self.room(&[], Some(Call::bytes(&self.module.funcs[entry]))).map_err(|why| {
                    let message = format!("no more blocks can be started: {why}");
                    Trap { op: "entry".into(), ..Trap::new(Code::OutOfMemory, message) }
                })?;
                self.start(entry, order.get(started - 1))
            } else {
                let pick = if self.launch.seed == 0 { 0 } else { rng.below(waiting.len() as u64) as usize };
                match waiting.swap_remove_front(pick) {
                    Some(b) => {
                        self.waiting -= b.bytes();
                        b
                    }
                    None => break,
                }
            };
            match self.slice(&mut block) {
                Ok(true) => {
                    self.flush(&mut block);
                    self.host.finished(block.id);
                    let done = std::mem::take(&mut block.allocas);
                    self.free.extend(done.into_iter().map(|(_, _, len, align, addr)| (len, align, addr)));
                }
                Ok(false) => {
                    self.waiting += block.bytes();
                    waiting.push_back(block);
                    if self.host.gave_way() {
                        let blocks: Vec<Waiting> = waiting.iter().map(|b| self.stands_at(b)).collect();
                        self.host.waiting(&blocks);
                    }
                }
                Err(trap) => {
                    for b in waiting.iter_mut().chain([&mut block]) {
                        self.flush(b);
                    }
                    return Err(trap);
                }
            }
        }
        Ok(Report { warnings: self.warnings(), blocks: total, steps: self.steps })
    }

    fn start(&self, entry: usize, linear: u64) -> Block {
        let func = &self.module.funcs[entry];
        let [gx, gy, _] = self.launch.grid.map(u64::from);
        let id = [(linear % gx) as u32, (linear / gx % gy) as u32, (linear / (gx * gy)) as u32];
        let mut call = Call::new(entry, func);
        for (&p, &bits) in func.params().iter().zip(&self.launch.args) {
            if let Some(ty) = func.tile_ty(p) {
                let mask = ty.num().map_or(u64::MAX, |d| d.mask());
                call.set(p, Val::Tile(Tile::new(ty, vec![bits & mask])));
            }
        }
        Block { id, linear, calls: vec![call], out: String::new(), accesses: 0, allocas: vec![] }
    }

    /// Requests memory in addition to the memory of the blocks in progress: those that wait, and the one with these
    /// calls.
    fn room(&mut self, calls: &[Call], bytes: Option<u64>) -> Result<(), TooMuch> {
        let own: u64 = calls.iter().map(|c| c.held).sum();
        self.budget.hold(self.waiting.saturating_add(self.allocated).saturating_add(own));
        self.budget.take(bytes)
    }

    /// Returns the trap if the memory that an operation is about to allocate exceeds the limit.
    pub fn room_for(&mut self, block: &Block, cx: Cx<'a>, bytes: Option<u64>) -> Result<(), Trap> {
        let trap = |why: TooMuch| (Code::OutOfMemory, format!("`{}` cannot be evaluated: {why}", cx.name()));
        let room = self.room(&block.calls, bytes).map_err(trap);
        room.map_err(|(code, message)| self.trap(cx, code, message, None))
    }

    /// Requests the memory for an operation's results while they are computed.
    fn room_for_results(&mut self, block: &Block, cx: Cx<'a>) -> Result<(), Trap> {
        let types = cx.op.results.iter().filter_map(|&r| cx.func.tile_ty(r));
        let elements = types.map(|t| t.elements()).try_fold(0u64, u64::checked_add);
        self.room_for(block, cx, elements.and_then(|n| n.checked_mul(ELEMENT)))?;
        let read = cx.op.operands.iter().filter_map(|&r| cx.func.tile_ty(r)).map(|t| t.elements());
        self.worked(block, read.chain(elements).fold(0, u64::saturating_add))
    }

    /// Holds an alloca's memory until the end of the run.
    pub fn hold_alloca(&mut self, bytes: u64) {
        self.allocated = self.allocated.saturating_add(bytes);
    }

    fn flush(&mut self, block: &mut Block) {
        if !block.out.is_empty() {
            self.host.print(block.id, &block.out);
            block.out.clear();
        }
    }

    /// Runs a block until it ends (`true`) or steps aside.
    fn slice(&mut self, block: &mut Block) -> Result<bool, Trap> {
        let mut left = SLICE;
        loop {
            // Without synchronisation no block waits for another, so each runs to its end.
            if left == 0 && self.tables.synchronises {
                return self.check_up(block).map(|_| false);
            }
            left = left.saturating_sub(1);
            self.steps += 1;
            let step = self.step(block)?;
            if !block.out.is_empty() && self.host.at_once() {
                self.flush(block);
                // The host may have requested an end when it took the text.
                self.check_up(block)?;
            }
            self.worked(block, 1)?;
            match step {
                Step::Next => {}
                Step::Switch => return self.check_up(block).map(|_| false),
                Step::Done => return Ok(true),
            }
        }
    }

    /// Counts work, and checks for an interrupt from time to time: however the work is spread over blocks, operations
    /// and elements, the run ends soon after an interrupt.
    pub(super) fn worked(&mut self, block: &Block, work: u64) -> Result<(), Trap> {
        self.work = self.work.saturating_add(work);
        let spent = self.options.fuel.is_some_and(|f| self.steps > f);
        if self.work < WORK && !spent {
            return Ok(());
        }
        self.work = 0;
        self.check_up(block)
    }

    /// Returns true if the run is to end; a long operation also checks while it runs.
    pub(super) fn interrupted(&self) -> bool {
        self.host.interrupted()
    }

    pub(super) fn check_up(&self, block: &Block) -> Result<(), Trap> {
        let (code, message) = if self.interrupted() {
            (Code::Interrupted, "the run was interrupted".to_string())
        } else if self.options.fuel.is_some_and(|f| self.steps > f) {
            (Code::OutOfFuel, format!("the kernel did not end within {} operations", self.options.fuel.unwrap_or(0)))
        } else {
            return Ok(());
        };
        let at = self.at(block);
        Err(match at {
            Some(cx) => self.trap(cx, code, message, None),
            None => Trap { op: "entry".into(), block: block.id, ..Trap::new(code, message) },
        })
    }

    /// The place at which a block gave way: the operation it executed last.
    fn stands_at(&self, block: &Block) -> Waiting {
        let last = block.calls.last().and_then(|call| {
            let active = call.regions.last()?;
            let func = self.module.funcs.get(call.func)?;
            let id = func.regions.get(active.region)?.ops.get(active.next.checked_sub(1)?)?;
            self.cx(block, call.func, *id)
        });
        Waiting {
            block: block.id,
            op: last.map_or("entry".to_string(), |cx| cx.name()),
            span: last.map(|cx| cx.op.span),
            frames: last.map_or_else(Frames::default, |cx| cx.op.loc.frames().into()),
        }
    }

    /// The operation a block is at.
    fn at(&self, block: &Block) -> Option<Cx<'a>> {
        let call = block.calls.last()?;
        let active = call.regions.last()?;
        let module: &'a Module = self.module;
        let func = &module.funcs[call.func];
        let region = func.regions.get(active.region)?;
        let id = *region.ops.get(active.next.min(region.ops.len().checked_sub(1)?))?;
        self.cx(block, call.func, id)
    }

    pub(super) fn cx(&self, block: &Block, findex: usize, id: OpId) -> Option<Cx<'a>> {
        let module: &'a Module = self.module;
        let func = &module.funcs[findex];
        let op = func.ops.get(id)?;
        let here = self.tables.origin(findex, id);
        Some(Cx { func, findex, id, op, block: block.id, linear: block.linear, here })
    }

    fn step(&mut self, block: &mut Block) -> Result<Step, Trap> {
        let Some(call) = block.calls.last_mut() else { return Ok(Step::Done) };
        let Some(active) = call.regions.last_mut() else { return self.leave(block, vec![]) };
        let module: &'a Module = self.module;
        let next = module.funcs[call.func].regions.get(active.region).and_then(|r| r.ops.get(active.next));
        let (findex, next) = (call.func, next.copied());
        let Some(id) = next else { return self.end_region(block, vec![], false) };
        active.next += 1;
        let Some(cx) = self.cx(block, findex, id) else { return Ok(Step::Done) };
        match cx.op.opcode {
            Opcode::If => {
                let taken = self.condition(block, cx)?;
                let region = cx.op.regions.get(if taken { 0 } else { 1 });
                match region {
                    Some(&region) => self.enter(block, region, Kind::If(id)),
                    None => self.complete(block, cx, vec![]),
                }
                Ok(Step::Next)
            }
            Opcode::Loop => {
                let init = self.values(block, cx, cx.op.group(0))?;
                let &region = cx.op.regions.first().ok_or_else(|| self.malformed(cx))?;
                self.bind(block, cx, region, 0, init)?;
                self.enter(block, region, Kind::Loop(id));
                Ok(Step::Next)
            }
            Opcode::For => self.start_for(block, cx),
            Opcode::Yield => {
                let values = self.values(block, cx, &cx.op.operands)?;
                self.end_region(block, values, false)
            }
            Opcode::Continue => {
                let values = self.values(block, cx, &cx.op.operands)?;
                self.unwind_to_loop(block, cx)?;
                self.end_region(block, values, false)
            }
            Opcode::Break => {
                let values = self.values(block, cx, &cx.op.operands)?;
                self.unwind_to_loop(block, cx)?;
                self.end_region(block, values, true)
            }
            Opcode::Return => {
                let values = self.values(block, cx, &cx.op.operands)?;
                self.leave(block, values)
            }
            Opcode::ExpCall => {
                let Some(Attr::Str(callee)) = cx.op.attr(AttrKey::Callee) else { return Err(self.malformed(cx)) };
                let found = module.funcs.iter().position(|f| f.name == *callee);
                let target = found.ok_or_else(|| self.malformed(cx))?;
                if block.calls.len() >= CALLS {
                    return Err(self.trap(
                        cx,
                        Code::NotVerified,
                        format!("functions call each other {CALLS} deep"),
                        None,
                    ));
                }
                self.room_for(block, cx, Some(Call::bytes(&module.funcs[target])))?;
                let args = self.values(block, cx, cx.op.group(0))?;
                let mut call = Call::new(target, &module.funcs[target]);
                for (&p, v) in module.funcs[target].params().iter().zip(args) {
                    call.set(p, v);
                }
                block.calls.push(call);
                Ok(Step::Next)
            }
            Opcode::Reduce | Opcode::Scan | Opcode::ExpGenerate => {
                self.room_for_results(block, cx)?;
                let mut fold = Fold::new(self, block, cx)?;
                let env = &block.calls.last().ok_or_else(|| self.malformed(cx))?.env;
                if let Some(mut program) = Program::compile(&self.tables, cx, env, fold.region) {
                    while let Some(args) = fold.args() {
                        program.run(args);
                        fold.accept(program.outputs());
                        self.worked(block, 1)?;
                    }
                    let results = fold.results();
                    self.complete(block, cx, results);
                } else {
                    self.fold_step(block, cx, fold)?;
                }
                Ok(Step::Next)
            }
            _ => {
                self.room_for_results(block, cx)?;
                let results = self.execute(block, cx)?;
                self.complete(block, cx, results);
                let aside = self.polite && super::code::synchronises(cx.op);
                Ok(if aside { Step::Switch } else { Step::Next })
            }
        }
    }

    /// Values of operands.
    pub fn values(&self, block: &Block, cx: Cx<'a>, ids: &[ValueId]) -> Result<Vec<Val>, Trap> {
        ids.iter().map(|&v| self.value(block, cx, v)).collect()
    }

    pub fn value(&self, block: &Block, cx: Cx<'a>, v: ValueId) -> Result<Val, Trap> {
        let found = block.calls.last().and_then(|c| c.env.get(v.index())).cloned().flatten();
        found.ok_or_else(|| self.malformed(cx))
    }

    pub fn tile(&self, block: &Block, cx: Cx<'a>, v: ValueId) -> Result<Tile, Trap> {
        match self.value(block, cx, v)? {
            Val::Tile(t) => Ok(t),
            _ => Err(self.malformed(cx)),
        }
    }

    /// Traps when an element is undefined.
    pub fn defined(&self, cx: Cx<'a>, t: &Tile, what: &str) -> Result<(), Trap> {
        match t.first_poison() {
            None => Ok(()),
            Some((i, origin)) => Err(self.undefined(cx, what, origin, &t.shape, i)),
        }
    }

    /// The trap for an undefined element that `cx` uses as `what`.
    pub fn undefined(&self, cx: Cx<'a>, what: &str, origin: Origin, shape: &[u64], i: usize) -> Trap {
        let born = self.tables.locate(origin).and_then(|(f, op)| {
            let func = self.module.funcs.get(f)?;
            Some(Cx { func, findex: f, id: op, op: func.ops.get(op)?, ..cx })
        });
        let born = born.unwrap_or(cx);
        let (user, name) = (cx.name(), born.name());
        if born.findex == cx.findex && born.id == cx.id {
            return self.trap(cx, Code::UndefinedUsed, format!("{what} is undefined in `{user}`"), Some((shape, i)));
        }
        let message = match cause(born.op) {
            Some(cause) => format!("`{name}` {cause} here, and `{user}` uses the undefined result as {what}"),
            None => format!("`{name}` computes an undefined element here, and `{user}` uses it as {what}"),
        };
        let user = User { op: user, span: Some(cx.op.span), frames: cx.op.loc.frames().into() };
        Trap { user: Some(Box::new(user)), ..self.trap(born, Code::UndefinedUsed, message, Some((shape, i))) }
    }

    pub fn trap(&self, cx: Cx<'a>, code: Code, message: impl Into<String>, element: Option<(&[u64], usize)>) -> Trap {
        let element = element.map(|(shape, i)| super::value::unravel(i as u64, shape));
        Trap {
            span: Some(cx.op.span),
            op: cx.name(),
            block: cx.block,
            element,
            frames: Box::new(cx.op.loc.frames().into()),
            ..Trap::new(code, message)
        }
    }

    /// The trap for a module that the verifier refuses.
    pub fn malformed(&self, cx: Cx<'a>) -> Trap {
        self.trap(
            cx,
            Code::NotVerified,
            format!("`{}` is malformed; the verifier refuses this module", cx.name()),
            None,
        )
    }

    fn place_globals(&mut self) {
        for (i, g) in self.module.globals.iter().enumerate() {
            let n = g.value.shape.iter().product::<u64>();
            let bytes = super::access::encode(g.value.dtype, (0..n as usize).map(|i| g.value.get(i)));
            let addr = self.options.globals.get(i).copied().unwrap_or_else(|| {
                let addr = self.memory.allocate(bytes.len() as u64, g.alignment.max(g.value.dtype.bytes()));
                // A write to memory that was just allocated for these bytes cannot fail.
                let _ = self.memory.write(addr, &bytes);
                addr
            });
            self.named.push((addr, bytes.len() as u64, format!("global @{}", g.name)));
            self.globals.push(addr);
        }
    }

    fn warnings(&self) -> Vec<Diagnostic> {
        let place = |o| self.tables.locate(o).and_then(|(f, op)| self.module.funcs.get(f)?.ops.get(op));
        let mut out = vec![];
        for c in self.shadow.conflicts() {
            let (Some(first), Some(second)) = (place(c.first), place(c.second)) else { continue };
            let code = if c.across_blocks { Code::DataRace } else { Code::NoTokenPath };
            let text = race::sentence(c, &name(first), &name(second));
            let help = match c.across_blocks {
                true => "order them with a release and an acquire, or make the accesses atomic",
                false => "pass the token of the first access to the second",
            };
            let mut d = Diagnostic::warning(code, text).at(second.span).help(help).from(second.loc.frames().into());
            if first.span != second.span || first.loc != second.loc {
                d = d.label(first.span, label("the other access", first));
            }
            out.push(d);
        }
        for op in self.unpadded.iter().filter_map(|&o| place(o)) {
            let text = format!("`{}` reads past the tensor through a view without padding", name(op));
            let help = "those elements are unspecified and read as 0 here; add `padding_value = zero` to the view";
            out.push(
                Diagnostic::warning(Code::UnspecifiedElements, text)
                    .at(op.span)
                    .help(help)
                    .from(op.loc.frames().into()),
            );
        }
        out
    }
}

impl Cx<'_> {
    pub fn name(&self) -> String {
        name(self.op)
    }
}

/// The reason why an element of an operation's result is undefined although its operands are defined.
fn cause(op: &Op) -> Option<&'static str> {
    Some(match op.opcode {
        Opcode::DivI | Opcode::RemI => "divides by zero or overflows",
        Opcode::ShlI | Opcode::ShrI => "shifts by the width of its type or more",
        Opcode::FToI => "converts a number that its result type cannot hold",
        Opcode::LoadPtrTko => "leaves out an element for which there is no padding",
        _ if op.attr(AttrKey::Overflow).is_some() => "overflows, which it promises not to,",
        _ => return None,
    })
}

/// The text of a label, with the operation's place if it is known.
fn label(what: &str, op: &Op) -> String {
    match op.loc.place() {
        Some(place) => format!("{what}, at {place}"),
        None => what.to_string(),
    }
}

fn name(op: &Op) -> String {
    crate::cuda_tile::ops::info(op.opcode).name.to_string()
}

impl Call {
    fn new(func: usize, f: &Func) -> Call {
        let body = Active { region: Func::BODY, next: 0, kind: Kind::Body };
        Call { func, env: vec![None; f.values.len()], held: Call::bytes(f), regions: vec![body] }
    }
    /// The bytes of a call before it has values.
    fn bytes(f: &Func) -> u64 {
        (f.values.len() * size_of::<Option<Val>>()) as u64
    }
    pub(super) fn set(&mut self, v: ValueId, val: Val) {
        self.put(v, Some(val));
    }
    pub(super) fn put(&mut self, v: ValueId, val: Option<Val>) {
        if let Some(slot) = self.env.get_mut(v.index()) {
            let new = val.as_ref().map_or(0, Val::bytes);
            let old = std::mem::replace(slot, val).map_or(0, |old| old.bytes());
            self.held = self.held + new - old;
        }
    }
}

impl Tile {
    pub fn elem_num(&self) -> Option<crate::num::DType> {
        match self.elem {
            Elem::Num(d) => Some(d),
            Elem::Ptr(_) => None,
        }
    }
}
