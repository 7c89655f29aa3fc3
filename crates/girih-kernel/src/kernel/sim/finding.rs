//! Collects what the simulator finds wrong: the same pair of statements is reported once, with its count.
//!
//! In: events as they happen, each kept as a few numbers. Out: [`Finding`]s with the statements' text, the names of
//! slots and arrays, and a sentence.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;

use super::WARP;
use super::clock::Stamp;
use super::shadow::Race;
use crate::base::Span;
use crate::base::location::Frames;
use crate::base::memory::Memory;
use crate::kernel::ir::*;
use crate::kernel::machine::{
    Lacks, Left, Meeting, Missing, Outside, Place as Where, Scope, Stalled, Standing, What, Wrong,
};
use crate::kernel::print::print_numbered;

/// The kind of an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// One thread reads what another writes, with nothing to order them.
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
    /// Memory is accessed that an asynchronous copy is still writing, or written that it is still reading.
    InFlight,
    /// TMA reads or overwrites what a thread wrote, without a fence between.
    Unfenced,
    /// An mbarrier is used before a thread can know that it is initialised, or initialised again.
    Init,
    /// TMA uses an mbarrier whose initialisation no fence has shown it.
    InitFence,
    /// More arrive at an mbarrier than it counts.
    Arrivals,
    /// An mbarrier expected other bytes than copies bring.
    Bytes,
    /// A thread waits for a phase by its parity, which a later phase has too.
    Aliased,
    /// A box that TMA does not copy, or a panel that `wgmma` does not read.
    Tensor,
    /// A product of a warpgroup begins with no fence behind what wrote its registers.
    RegisterFence,
    /// A rule of tensor memory is broken: an order of accesses, a fence, an allocation.
    TensorMemory,
    /// Registers are used that a product of a warpgroup still adds to, or reads.
    Sums,
    /// A warpgroup asks for more registers and has as many, or gives up some that it does not have.
    Registers,
    /// A block ends while a copy or a product may still touch its shared memory, which another block may have next.
    LeftInFlight,
    /// Shared memory is read that the block never wrote.
    Unwritten,
    OutOfBounds,
    Misaligned,
    /// Threads meet at a barrier or a shuffle that not all of them reach, or reach at different statements.
    Divergent,
    /// No thread of a block can go on.
    Deadlock,
}

impl Kind {
    /// `read-after-write`, for lists and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ReadAfterWrite => "read-after-write",
            Kind::WriteAfterRead => "write-after-read",
            Kind::WriteAfterWrite => "write-after-write",
            Kind::InFlight => "in-flight",
            Kind::Unfenced => "unfenced",
            Kind::Init => "mbarrier-init",
            Kind::InitFence => "mbarrier-fence",
            Kind::Arrivals => "mbarrier-arrivals",
            Kind::Bytes => "mbarrier-bytes",
            Kind::Aliased => "mbarrier-aliased",
            Kind::Tensor => "tensor",
            Kind::RegisterFence => "register-fence",
            Kind::TensorMemory => "tensor-memory",
            Kind::Sums => "sums-in-flight",
            Kind::Registers => "registers",
            Kind::LeftInFlight => "in-flight-at-end",
            Kind::Unwritten => "unwritten",
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::Divergent => "divergent",
            Kind::Deadlock => "deadlock",
        }
    }

    pub fn is_race(self) -> bool {
        use Kind::*;
        matches!(self, ReadAfterWrite | WriteAfterRead | WriteAfterWrite | InFlight | Unfenced)
    }
}

impl From<Race> for Kind {
    fn from(race: Race) -> Kind {
        match race {
            Race::ReadAfterWrite => Kind::ReadAfterWrite,
            Race::WriteAfterRead => Kind::WriteAfterRead,
            Race::WriteAfterWrite => Kind::WriteAfterWrite,
        }
    }
}

/// A statement of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its number in the text of the kernel, from 0.
    pub number: u32,
    /// Its line there, from 1.
    pub line: u32,
    pub text: String,
    /// The user's line that it, or the nearest loop around it, was made for: `kernel.py:12`.
    pub from: Option<String>,
    /// Its line in the kernel's CUDA, from 1.
    pub cuda: Option<u32>,
}

/// The operation of the user's program that a statement was made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// `kernel.py:12`, or the nodes of a model.
    pub text: String,
    pub span: Option<Span>,
    pub frames: Frames,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    pub block: [u32; 3],
    pub thread: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub kind: Kind,
    /// One sentence, or a few lines.
    pub message: String,
    /// The earlier statement of a race.
    pub first: Option<(Statement, Thread)>,
    /// The statement, and a thread that ran it.
    pub statement: Statement,
    pub thread: Thread,
    /// The user's operation that the statement was made for; see [`super::Report::locate`].
    pub origin: Option<Origin>,
    /// The element or the bytes, where there are some: element 33 of `tile`.
    pub place: Option<String>,
    pub help: Option<&'static str>,
    /// How often it was seen.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.kind.name(), self.message)?;
        let mut line = |s: &Statement, who: &Thread, before: &str| {
            let (number, text, thread) = (s.line, &s.text, who.thread);
            let Some(from) = &s.from else {
                return writeln!(f, "  {before}line {number}: `{text}` by thread {thread}");
            };
            let cuda = s.cuda.map_or(String::new(), |line| format!(" and line {line} of the CUDA"));
            writeln!(f, "  {before}{from} by thread {thread}, line {number} of Kernel IR{cuda}: `{text}`")
        };
        if let Some((statement, who)) = &self.first {
            line(statement, who, "")?;
        }
        line(&self.statement, &self.thread, if self.first.is_some() { "then " } else { "" })?;
        let [x, y, z] = self.thread.block;
        let place = self.place.as_ref().map_or(String::new(), |p| format!("{p}, "));
        let times = if self.count == 1 { "once".to_string() } else { format!("{} times", self.count) };
        match &self.first {
            Some((_, who)) if who.block != self.thread.block => {
                let [a, b, c] = who.block;
                writeln!(f, "  {place}blocks {a},{b},{c} and {x},{y},{z}; seen {times}")?;
            }
            _ => writeln!(f, "  {place}block {x},{y},{z}; seen {times}")?,
        }
        self.help.map_or(Ok(()), |help| writeln!(f, "  help: {help}"))
    }
}

/// Kinds of findings and pairs of statements that are told apart at most.
const MOST: usize = 40;

/// The key by which two events are the same finding.
type Key = (Kind, bool, u32, u32);

struct Event {
    first: Option<Stamp>,
    block: [u32; 3],
    thread: u32,
    /// Where in shared memory, or the address, and how many bytes.
    bytes: Option<(u64, u32)>,
    detail: Detail,
    count: u64,
}

/// The details of an event beside its kind.
enum Detail {
    None,
    /// The whole sentence, because the surroundings of an address are known only while it is accessed.
    Told(String),
    /// The whole sentence, and a help line.
    Helped(String, &'static str),
    /// The threads that wait, with the statements they wait at, and those that have ended.
    Waiting {
        what: String,
        standing: Vec<Standing>,
        ended: Vec<u32>,
    },
}

impl Detail {
    /// The help line for threads that wait for each other or for a phase of an mbarrier.
    fn help(&self) -> Option<&'static str> {
        match self {
            Detail::Waiting { standing, .. }
                if standing.iter().any(|s| matches!(s.lacks, Some(Lacks::Registers { .. }))) =>
            {
                Some("let all warpgroups together ask for at most what the block began with")
            }
            Detail::Waiting { standing, .. } if standing.iter().any(|s| s.lacks.is_some()) => {
                Some("`arrive` as often as `count` says in each phase, and copy the bytes that `expect` says")
            }
            Detail::Helped(_, help) => Some(help),
            _ => None,
        }
    }
}

/// Events so far.
#[derive(Default)]
pub(super) struct Found {
    keys: FxHashMap<Key, usize>,
    events: Vec<(Key, Event)>,
    /// Events that were not kept.
    pub untold: u64,
}

/// An access that something is wrong with.
#[derive(Clone, Copy)]
pub(super) struct Bad {
    pub shared: bool,
    pub block: [u32; 3],
    pub statement: u32,
    pub thread: u32,
    pub address: u64,
    pub bytes: u32,
}

impl Found {
    fn tell(&mut self, key: Key, event: impl FnOnce() -> Event) {
        if let Some(at) = self.keys.get(&key) {
            self.events[*at].1.count += 1;
        } else if self.events.len() < MOST {
            self.keys.insert(key, self.events.len());
            self.events.push((key, event()));
        } else {
            self.untold += 1;
        }
    }

    pub fn access(&mut self, kind: Kind, bad: Bad, first: Option<Stamp>) {
        let key = (kind, bad.shared, first.map_or(bad.statement, Stamp::statement), bad.statement);
        self.tell(key, || Event {
            first,
            block: bad.block,
            thread: bad.thread,
            bytes: Some((bad.address, bad.bytes)),
            detail: Detail::None,
            count: 1,
        });
    }

    pub fn outside(&mut self, outside: Outside, kernel: &Kernel) {
        let Outside { block, statement, thread, what, place } = outside;
        let verb = match what {
            What::Read => "reads",
            What::Write => "writes",
            What::Update => "updates",
        };
        let shared = matches!(place, Where::Slot { space: Space::Shared, .. });
        let detail = || match place {
            Where::Slot { buf, space, index, count } => {
                let (name, len) = kernel.slots.get(buf).map_or(("?", 0), |s| (s.name.as_str(), s.len));
                let which = match count {
                    1 => format!("element {index}"),
                    n => format!("elements {index} to {}", index.saturating_add(i64::from(n) - 1)),
                };
                format!("a thread {verb} {which} of `{name}` in {} memory, which has {len}", space)
            }
            Where::Memory { fault, near } => {
                format!("a thread {verb} {} bytes at address {:#x} of global memory{near}", fault.len, fault.addr)
            }
        };
        self.tell((Kind::OutOfBounds, shared, statement, statement), || Event {
            first: None,
            block,
            thread,
            bytes: None,
            detail: Detail::Told(detail()),
            count: 1,
        });
    }

    pub fn wrong(&mut self, block: [u32; 3], statement: u32, thread: u32, wrong: Wrong, kernel: &Kernel) {
        let name = |number: &u32| mbarrier_text(kernel, *number);
        let (kind, told) = match &wrong {
            Wrong::Uninitialised { number } => (
                Kind::Init,
                format!("a thread uses the mbarrier {} and cannot know that it is initialised", name(number)),
            ),
            Wrong::Again { number } => {
                (Kind::Init, format!("the mbarrier {} is initialised a second time", name(number)))
            }
            Wrong::Unfenced { number } => (
                Kind::InitFence,
                format!("TMA uses the mbarrier {}, and no fence has shown it that this is initialised", name(number)),
            ),
            Wrong::Arrivals { number, count } => (
                Kind::Arrivals,
                format!("more arrive at a phase of the mbarrier {} than the {count} that it counts", name(number)),
            ),
            Wrong::Bytes { number, expected, brought } => (
                Kind::Bytes,
                format!(
                    "a phase of the mbarrier {} ended that expected {expected} bytes, and copies bring {brought}",
                    name(number)
                ),
            ),
            Wrong::Aliased { number, phase, meant } => (
                Kind::Aliased,
                format!(
                    "a thread waits for phase {meant} of the mbarrier {}, which is in phase {phase} already: the parity \
                     takes one for another",
                    name(number)
                ),
            ),
            Wrong::Gone { number } => (
                Kind::Tensor,
                format!(
                    "the mbarrier {} of another block of the cluster is used, and that block has ended",
                    name(number)
                ),
            ),
            Wrong::Tensor(what) => (Kind::Tensor, what.clone()),
            Wrong::Registers => {
                (Kind::RegisterFence, "a `wgmma` begins, and no `fence registers` shows it the registers".to_string())
            }
            Wrong::Sums => (Kind::Sums, "sums are used that a `wgmma` may still be adding to".to_string()),
            Wrong::Words => (Kind::Sums, "words are used that a `wgmma` may still be reading".to_string()),
            Wrong::Loads => (
                Kind::Sums,
                "an array is used that a `tcgen05 load` may still be filling: put the `tcgen05 wait` of the array before".to_string(),
            ),
            Wrong::TensorMemory(what) => (Kind::TensorMemory, (*what).to_string()),
            Wrong::Change { count, more, has } => {
                let way = if *more { "more" } else { "fewer" };
                (Kind::Registers, format!("a thread that has {has} registers is to have {way}: {count}"))
            }
            Wrong::Left(left) => (Kind::LeftInFlight, left_text(*left).to_string()),
        };
        let detail = Detail::Told(told);
        self.detailed((kind, true, statement, statement), block, thread, detail);
    }

    pub fn uneven(&mut self, meeting: Meeting) {
        let Meeting { block, scope, standing, ended } = meeting;
        let Some(first) = standing.first() else { return };
        let (statement, thread) = (first.statement, first.threads.first().copied().unwrap_or(0));
        let last = standing.last().map_or(statement, |s| s.statement);
        let whose = match scope {
            Scope::Cluster => "threads of a cluster".to_string(),
            Scope::Block(_) => "threads of a block".to_string(),
            Scope::First(_, count) => format!("first {count} threads of a block"),
            Scope::Warp(w) => format!("lanes of warp {w}"),
        };
        let what = format!("the {whose} do not all meet at one statement");
        let key = (Kind::Divergent, !matches!(scope, Scope::Warp(_)), statement, last);
        self.detailed(key, block, thread, Detail::Waiting { what, standing, ended });
    }

    fn detailed(&mut self, key: Key, block: [u32; 3], thread: u32, detail: Detail) {
        self.tell(key, || Event { first: None, block, thread, bytes: None, detail, count: 1 });
    }

    pub fn stuck(&mut self, block: [u32; 3], standing: Vec<Standing>) {
        let Some(first) = standing.first() else { return };
        let (statement, thread) = (first.statement, first.threads.first().copied().unwrap_or(0));
        let key = (Kind::Deadlock, true, statement, statement);
        let what = "no thread of the block can go on".to_string();
        self.detailed(key, block, thread, Detail::Waiting { what, standing, ended: vec![] });
    }

    pub fn stalled(&mut self, stalled: Stalled) {
        let Stalled { block, statement, thread, resident, left } = stalled;
        let what = match (resident, left) {
            (1, 0) => "a block goes round for ever: nothing that it reads is changed any more".to_string(),
            (n, 0) => format!("{n} blocks go round for ever: nothing that they read is changed any more"),
            (n, left) => format!(
                "{n} blocks are resident at once, and all of them wait; the {left} others begin only when one of these ends"
            ),
        };
        let help = match left {
            0 => "let some thread write what they wait for",
            _ => "let a block wait only for blocks before it, or launch at most the number that is resident at once",
        };
        self.detailed((Kind::Deadlock, false, statement, statement), block, thread, Detail::Helped(what, help));
    }

    /// The findings, in order of their statements, with names.
    pub fn told(self, texts: &Texts, kernel: &Kernel, memory: &dyn Memory, grid: [u32; 3]) -> Vec<Finding> {
        let mut all: BTreeMap<(u32, u32, Kind, bool), Finding> = BTreeMap::new();
        for ((kind, shared, first, second), e) in self.events {
            let earlier = e
                .first
                .map(|s| (texts.statement(s.statement()), of_cluster(kernel, block_of(s.block - 1, grid), s.thread())));
            let place = e.bytes.map(|(at, bytes)| place_text(kernel, memory, shared, at, bytes));
            let space = if shared { "shared" } else { "global" };
            let thread = of_cluster(kernel, e.block, e.thread);
            let across = earlier.as_ref().is_some_and(|(_, t)| t.block != thread.block);
            let statement = if kind.is_race() { second } else { first };
            let copied = earlier.as_ref().map_or(Copied::Not, |(s, _)| texts.copied(s.number));
            let finding = Finding {
                kind,
                message: sentence(kind, space, across, &e.detail, (texts, kernel)),
                help: e.detail.help().or_else(|| help(kind, shared, across, copied)),
                first: earlier,
                statement: texts.statement(statement),
                thread,
                origin: None,
                place,
                count: e.count,
            };
            all.insert((first, second, kind, shared), finding);
        }
        all.into_values().collect()
    }
}

/// The text for work that still goes on when its block ends.
fn left_text(left: Left) -> &'static str {
    match left {
        Left::Copy => {
            "a block ends while a `copy async` may still be writing its shared memory: no `wait groups` covers the copy"
        }
        Left::Box => {
            "a block ends while TMA may still be writing its shared memory: no thread waits for the phase of the mbarrier that \
             counts the bytes of the box"
        }
        Left::Store => "a block ends while TMA may still be reading its shared memory: no `copy wait` covers the box",
        Left::Tcgen05 => {
            "a block ends while a `tcgen05 mma` may still be reading its shared memory: no thread waits for a phase that counts a commit \
             behind the product"
        }
        Left::Columns => "a block ends without giving back its columns of tensor memory (`tcgen05 dealloc`)",
        Left::Product => {
            "a block ends while a `wgmma` may still be reading its shared memory: no `wgmma wait` covers the product"
        }
    }
}

fn sentence(kind: Kind, space: &str, across: bool, detail: &Detail, (texts, kernel): (&Texts, &Kernel)) -> String {
    match detail {
        Detail::Told(text) | Detail::Helped(text, _) => return text.clone(),
        Detail::Waiting { what, standing, ended } => return waiting_text(what, standing, ended, texts, kernel),
        Detail::None => {}
    }
    let who = if across { "a thread of another block" } else { "another thread" };
    let race = |what: &str| format!("a race in {space} memory: a thread {what}, with nothing to order the two");
    match kind {
        Kind::ReadAfterWrite => race(&format!("reads what {who} has written")),
        Kind::WriteAfterRead => race(&format!("writes what {who} has read")),
        Kind::WriteAfterWrite => race(&format!("writes what {who} has written")),
        Kind::InFlight if space == "shared" => {
            "a thread accesses shared memory that an asynchronous copy may still be writing".to_string()
        }
        Kind::InFlight => "a thread writes global memory that an asynchronous copy may still be reading".to_string(),
        Kind::Unwritten => "a thread reads shared memory that its block has not written".to_string(),
        Kind::Misaligned => format!("an access of {space} memory is not aligned to its own size"),
        Kind::Unfenced if space == "global" => {
            "TMA copies from or to global memory that a thread has written, with no `fence global` between".to_string()
        }
        Kind::Unfenced => {
            "TMA overwrites or copies, or `wgmma` or `tcgen05` reads, what a thread has written, with no `fence async` behind the write"
                .to_string()
        }
        _ => kind.name().to_string(),
    }
}

/// `copied`: what the earlier of the two statements is.
fn help(kind: Kind, shared: bool, across: bool, copied: Copied) -> Option<&'static str> {
    match (kind, copied) {
        (Kind::InFlight | Kind::ReadAfterWrite | Kind::WriteAfterWrite, Copied::ByTma) if !across => {
            return Some("wait for the phase of the mbarrier that counts the bytes of the copy");
        }
        (Kind::InFlight, Copied::Multiplied) => {
            return Some("put the `wgmma wait` that covers the product before, with a `barrier` behind it");
        }
        (Kind::InFlight | Kind::WriteAfterRead, Copied::MultipliedInTensorMemory) => {
            return Some("wait for the phase of the mbarrier that counts a `tcgen05 commit` behind the product");
        }
        (Kind::InFlight, Copied::Back) => {
            return Some(
                "let the thread that copies run `copy wait`, with a `barrier` behind, before shared memory is written again; \
                 let another kernel use what it copies to global memory",
            );
        }
        (Kind::InFlight, _) => {
            return Some(
                "wait for the group of the copy, with a `barrier` behind; or begin it behind a `barrier` that all readers reach",
            );
        }
        (Kind::ReadAfterWrite, Copied::ByThread) if !across => {
            return Some("a `wait` is for the copies of its own thread: put a `barrier` behind it");
        }
        _ => {}
    }
    match kind {
        Kind::Unfenced if !shared => {
            Some("let the thread that wrote run `fence global`, and then meet the one that copies")
        }
        Kind::Unfenced => Some("let the thread that wrote run `fence async`, and then meet the one that copies"),
        Kind::RegisterFence => Some(
            "put a `fence registers` before the first `wgmma` behind a `wgmma wait`, and behind the words of its left operand",
        ),
        Kind::Sums => Some("put a `wgmma wait` before, which covers the group of the product"),
        Kind::LeftInFlight => Some("wait for it before the block ends, or do not begin it"),
        Kind::Init => Some("initialise it once, in one thread, and put a `barrier` behind"),
        Kind::InitFence => Some("put a `fence init` behind the `init`, in the same thread and before the `barrier`"),
        Kind::Arrivals | Kind::Bytes => Some("let `count` and `expect` say what arrives and comes in one phase"),
        Kind::Aliased => {
            Some("let what ends the next phase wait for this thread, by an mbarrier of free slots or a `barrier`")
        }
        _ if kind.is_race() && across => {
            Some("order the blocks by a release and an acquire, or give each block elements of its own")
        }
        Kind::WriteAfterRead => Some("put a `barrier` between the last read of the old value and the write"),
        _ if kind.is_race() => Some("put a `barrier` between the two; within a warp, a `syncwarp`"),
        Kind::Divergent | Kind::Deadlock => Some("move it to where all threads that wait for each other come"),
        _ => None,
    }
}

/// The block of a linear number.
pub(super) fn block_of(number: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (x.max(1), y.max(1));
    [number % x, number / x % y, number / x / y]
}

/// `element 33 of `tile` (bytes 132 to 135 of shared memory)`.
fn place_text(kernel: &Kernel, memory: &dyn Memory, shared: bool, at: u64, bytes: u32) -> String {
    if shared {
        let at = at % kernel.apart().max(1);
        let until = at.saturating_add(u64::from(bytes).max(1) - 1);
        let of =
            kernel.slots.values().find(|s| s.is_shared() && s.offset <= at && at < s.offset.saturating_add(s.bytes()));
        let bytes = format!("bytes {at} to {until} of shared memory");
        return match of {
            Some(slot) => {
                format!("element {} of `{}` ({bytes})", (at - slot.offset) / slot.elem_bytes().max(1), slot.name)
            }
            None => bytes,
        };
    }
    let until = at.saturating_add(u64::from(bytes).max(1) - 1);
    match memory.region(at) {
        Some((name, start, _)) if start <= at => {
            format!("bytes {} to {} of `{name}`", at - start, until - start)
        }
        _ => format!("bytes {at:#x} to {until:#x}"),
    }
}

/// A thread by its number in its block; the machine counts those of a cluster through its blocks.
fn of_cluster(kernel: &Kernel, [x, y, z]: [u32; 3], thread: u32) -> Thread {
    let threads = kernel.threads.max(1);
    Thread { block: [x + thread / threads, y, z], thread: thread % threads }
}

/// `full[1]`.
fn mbarrier_text(kernel: &Kernel, number: u32) -> String {
    let mut left = u64::from(number) % kernel.mbarriers().max(1);
    for slot in kernel.slots.values().filter(|s| s.space == Space::Mbarrier) {
        if left < slot.len {
            return format!("`{}[{left}]`", slot.name);
        }
        left -= slot.len;
    }
    "?".to_string()
}

/// `full[1]` is in phase 3, which lacks 1 of 2 arrivals and 4096 bytes.
fn missing_text(missing: Missing, kernel: &Kernel) -> String {
    let Missing { number, phase, count, arrivals, bytes } = missing;
    let lacks = match (arrivals, bytes) {
        (n, 0) => format!("{n} of {count} arrivals"),
        (0, bytes) => format!("{bytes} bytes"),
        (n, bytes) => format!("{n} of {count} arrivals and {bytes} bytes"),
    };
    format!("{} is in phase {phase}, which lacks {lacks}", mbarrier_text(kernel, number))
}

fn lacks_text(lacks: Lacks, kernel: &Kernel) -> String {
    match lacks {
        Lacks::Phase(missing) => missing_text(missing, kernel),
        Lacks::Registers { asks, has, free, first, threads } => format!(
            "a warp of {WARP} threads with {has} registers each asks for {} more; its block began with {first} for each of \
             {threads} threads, and {free} of these {} are free",
            (asks - has) * WARP,
            first * threads
        ),
    }
}

/// The text of an event, and a line for each statement at which threads wait.
fn waiting_text(what: &str, standing: &[Standing], ended: &[u32], texts: &Texts, kernel: &Kernel) -> String {
    let mut out = what.to_string();
    for s in standing {
        let at = texts.statement(s.statement);
        let wait = if s.threads.len() == 1 { "waits" } else { "wait" };
        out += &format!("\n  {} {wait} at line {}: `{}`", threads_text(&s.threads), at.line, at.text);
        if let Some(lacks) = s.lacks {
            out += &format!("\n    {}", lacks_text(lacks, kernel));
        }
    }
    if !ended.is_empty() {
        out += &format!("\n  {} {} ended", threads_text(ended), if ended.len() == 1 { "has" } else { "have" });
    }
    out
}

/// `threads 0-31, 40`.
fn threads_text(threads: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = vec![];
    for t in threads {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *t => *last = *t,
            _ => ranges.push((*t, *t)),
        }
    }
    let more = ranges.len().saturating_sub(8);
    let one = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    let mut shown: Vec<String> = ranges.iter().take(8).map(one).collect();
    if more > 0 {
        shown.push("...".to_string());
    }
    let word = if threads.len() == 1 { "thread" } else { "threads" };
    format!("{word} {}", shown.join(", "))
}

/// The statements of a kernel as text.
pub(super) struct Texts {
    all: Vec<Statement>,
    /// For each statement, the kind of asynchronous copy that it is.
    copies: Vec<Copied>,
}

/// The kind of asynchronous copy that a statement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copied {
    Not,
    ByThread,
    ByTma,
    /// By TMA, from shared to global memory.
    Back,
    /// By no copy: a product of a warpgroup reads it, or one with sums in tensor memory.
    Multiplied,
    MultipliedInTensorMemory,
}

impl Texts {
    pub fn of(kernel: &Kernel) -> Texts {
        let (text, starts) = print_numbered(kernel);
        let lines: Vec<&str> = text.lines().collect();
        let mut around = vec![];
        loops_around(kernel, &kernel.body, None, &mut around);
        let (froms, copies): (Vec<_>, Vec<_>) = around.into_iter().unzip();
        let one = |(number, (line, from)): (usize, (&u32, Option<String>))| {
            let shown = lines.get((*line as usize).wrapping_sub(1)).copied().unwrap_or_default();
            let shown = shown.split("  # ").next().unwrap_or_default();
            let text = shown.trim().trim_end_matches(" {").to_string();
            Statement { number: number as u32, line: *line, text, from, cuda: None }
        };
        Texts { all: starts.iter().zip(froms).enumerate().map(one).collect(), copies }
    }

    fn copied(&self, number: u32) -> Copied {
        self.copies.get(number as usize).copied().unwrap_or(Copied::Not)
    }

    pub fn statement(&self, number: u32) -> Statement {
        let none = || Statement { number, line: 0, text: "the end of the kernel".to_string(), from: None, cuda: None };
        self.all.get(number as usize).cloned().unwrap_or_else(none)
    }
}

/// The user's line of the nearest loop around each statement, and whether it is an asynchronous copy.
fn loops_around(kernel: &Kernel, body: &[Stmt], around: Option<&str>, out: &mut Vec<(Option<String>, Copied)>) {
    for stmt in body {
        let own = match stmt {
            Stmt::For { axis, .. } => kernel.axes.get(*axis).and_then(|a| a.from.as_ref()).map(|l| l.as_str()),
            _ => None,
        };
        let around = own.or(around);
        let copied = match stmt {
            Stmt::CopyAsync { .. } => Copied::ByThread,
            Stmt::TmaLoad { .. } => Copied::ByTma,
            Stmt::TmaStore { .. } => Copied::Back,
            Stmt::Wgmma { .. } => Copied::Multiplied,
            Stmt::Tcgen05Mma { .. } => Copied::MultipliedInTensorMemory,
            _ => Copied::Not,
        };
        out.push((around.map(String::from), copied));
        match stmt {
            Stmt::For { body, .. } | Stmt::Loop { body } => loops_around(kernel, body, around, out),
            Stmt::If { then, els, .. } => {
                loops_around(kernel, then, around, out);
                loops_around(kernel, els, around, out);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_in_ranges() {
        assert_eq!(threads_text(&[7]), "thread 7");
        assert_eq!(threads_text(&[0, 1, 2, 3, 9, 11, 12]), "threads 0-3, 9, 11-12");
        let odd: Vec<u32> = (0..40).map(|n| 2 * n).collect();
        assert_eq!(threads_text(&odd), "threads 0, 2, 4, 6, 8, 10, 12, 14, ...");
    }

    #[test]
    fn blocks_count_along_x_first() {
        assert_eq!(
            [0, 1, 3, 7, 23].map(|n| block_of(n, [3, 2, 4])),
            [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 1], [2, 1, 3]]
        );
    }
}
