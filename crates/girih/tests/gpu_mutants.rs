//! Every barrier, wait, commit, fence, arrival and copy that is derived for a GPU is needed, as it is and where it is.
//!
//! Kernels of models and of tile programs are changed in one such statement: it is deleted, its number is another one, or it is
//! exchanged with the statement behind it. The simulator must find something wrong with each mutant, or it computes other
//! values, under one of the schedules; or it is equivalent, for a reason that is known. Anything else survives and fails.
//!
//! `cargo test -p girih --test gpu_mutants -- --nocapture` prints the counts; with `MUTANTS=all` each program is
//! placed for every target, and each model at all of the knobs; else at a fourth of them, in turn. `MUTANTS=softmax` takes those
//! whose expression has that word.

#[path = "it/gpu_programs/mod.rs"]
mod gpu_programs;

use std::collections::BTreeMap;

use girih_compiler::index::{Cmp, Ix};
use girih_compiler::kernel::ir::{Address, Fence, Kernel, Space, Stmt, ValId, statements};
use girih_compiler::kernel::print;
use gpu_programs::{
    CLUSTERED, IN_TENSOR_MEMORY, IN_TURN, Program, TARGETS, programs, programs_in_clusters, programs_in_turn, simulate,
};

const MODELS: &[&str] = &[
    "torch.randn(40, 72) @ torch.randn(72, 36)",
    "torch.nn.Linear(72, 40)(torch.randn(36, 72))",
    "torch.randn(40, 96, dtype=torch.float16) @ torch.randn(96, 48, dtype=torch.float16)",
    "torch.nn.Linear(136, 40, dtype=torch.bfloat16)(torch.randn(36, 136, dtype=torch.bfloat16))",
    "torch.softmax(torch.randn(3, 300), dim=1)",
    "torch.nn.functional.layer_norm(torch.randn(3, 200), (200,))",
    "torch.cumsum(torch.randn(3, 300), 1)",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 20, 16), torch.randn(1, 1, 40, 16), \
     torch.randn(1, 1, 40, 16))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 150, 16, dtype=torch.float16), \
     torch.randn(1, 1, 150, 16, dtype=torch.float16), torch.randn(1, 1, 150, 24, dtype=torch.float16), is_causal=True)",
];

/// Products of warpgroups, and the tiles that make them so.
const GROUPED: &[(&str, &[&str])] = &[
    (
        "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 64, 32, dtype=torch.float16), torch.randn(1, 1, 320, 32, \
         dtype=torch.float16), torch.randn(1, 1, 320, 16, dtype=torch.float16))",
        &["slots=3"],
    ),
    (
        "torch.randn(64, 128, dtype=torch.float16) @ torch.randn(128, 64, dtype=torch.float16)",
        &["mc=64", "nc=32", "kc=32"],
    ),
    (
        "torch.nn.Linear(96, 40, dtype=torch.bfloat16)(torch.randn(70, 96, dtype=torch.bfloat16))",
        &["mc=64", "nc=32", "slots=2"],
    ),
    (
        "torch.randn(70, 200, dtype=torch.float16) @ torch.randn(200, 64, dtype=torch.float16)",
        &["mc=64", "nc=32", "slots=2", "warp_specialize=1"],
    ),
    // Products that go on while the next begins: slots that are filled again, by all or by a warp, and one for each iteration.
    (
        "torch.randn(64, 200, dtype=torch.float16) @ torch.randn(200, 64, dtype=torch.float16)",
        &["mc=64", "nc=32", "kc=32", "slots=3", "overlap=1"],
    ),
    (
        "torch.randn(64, 200, dtype=torch.float16) @ torch.randn(200, 64, dtype=torch.float16)",
        &["mc=64", "nc=32", "kc=32", "slots=3", "overlap=1", "warp_specialize=1"],
    ),
    (
        "torch.randn(64, 128, dtype=torch.float16) @ torch.randn(128, 64, dtype=torch.float16)",
        &["mc=64", "nc=32", "kc=32", "slots=4"],
    ),
];

/// How the pipelines of a product are made.
const KNOBS: [&[&str]; 6] = [
    &[],
    &["slots=1"],
    &["slots=2"],
    &["slots=2", "tma=0"],
    &["slots=4", "async_copy=0", "tma=0"],
    &["slots=2", "kc=32", "warp_specialize=1"],
];
const SEEDS: u64 = 11;

/// How a statement is changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    Delete,
    /// A number is one, or 16 bytes, more or less.
    More,
    Less,
    /// It counts on the mbarrier of another generation.
    Another,
    /// It stands behind the next statement.
    Later,
}

fn changes(s: &Stmt) -> &'static [Change] {
    use Change::*;
    match s {
        Stmt::Barrier | Stmt::BarrierFirst { .. } | Stmt::ClusterBarrier => &[Delete, Later],
        Stmt::WaitGroups { .. } => &[Delete, More, Later],
        Stmt::WaitPhase { .. } => &[Delete, More, Another, Later],
        Stmt::Arrive { .. } => &[Delete, More, Less, Another],
        Stmt::InitBarrier { .. } => &[Delete, More],
        Stmt::TmaLoad { .. } => &[Delete, Less, Another],
        Stmt::WgmmaWait { .. } | Stmt::StoreWait { .. } => &[Delete, More, Later],
        Stmt::Tcgen05Commit { .. } => &[Delete, Another],
        Stmt::Tcgen05Wait { .. } => &[Delete],
        Stmt::TmaStore { .. } | Stmt::StoreCommit => &[Delete],
        Stmt::SyncWarp | Stmt::Commit | Stmt::WgmmaCommit | Stmt::Fence { .. } | Stmt::CopyAsync { .. } => &[Delete],
        _ => &[],
    }
}

/// A statement with its number changed; `None` where there is nothing to change.
fn changed(kernel: &Kernel, s: &Stmt, change: Change) -> Option<Stmt> {
    let mut s = s.clone();
    let next = |on: &mut Address| match on {
        Address::Slot { buf, index } => {
            let len = kernel.slots[*buf].len as i64;
            *index = Ix::modulo(Ix::add(index.clone(), Ix::Const(1)), Ix::Const(len));
            len > 1
        }
        Address::Mem { .. } => false,
    };
    let does = match (&mut s, change) {
        (Stmt::WaitGroups { left } | Stmt::WgmmaWait { left, .. } | Stmt::StoreWait { left }, Change::More) => {
            *left += 1;
            true
        }
        (Stmt::WaitPhase { parity, .. }, Change::More) => {
            *parity = Ix::modulo(Ix::add(parity.clone(), Ix::Const(1)), Ix::Const(2));
            true
        }
        // To the thread's own block alone.
        (Stmt::TmaLoad { all, .. }, Change::Less) => std::mem::replace(all, false),
        (Stmt::InitBarrier { count, .. }, Change::More) => {
            *count += 1;
            true
        }
        (Stmt::Arrive { bytes: Some(bytes), .. }, Change::More) => {
            *bytes += 16;
            true
        }
        (Stmt::Arrive { bytes: Some(bytes), .. }, Change::Less) => {
            *bytes -= 16;
            true
        }
        (
            Stmt::WaitPhase { on, .. }
            | Stmt::Arrive { on, .. }
            | Stmt::TmaLoad { on, .. }
            | Stmt::Tcgen05Commit { on },
            Change::Another,
        ) => next(on),
        _ => false,
    };
    does.then_some(s)
}

/// The mutants of a kernel: the change and its statement, the kernel, and why it is equivalent if it is known to be.
fn mutants(kernel: &Kernel) -> Vec<(String, Kernel, Option<&'static str>)> {
    let mut out = vec![];
    for site in 0.. {
        let mut there = false;
        for change in [Change::Delete, Change::More, Change::Less, Change::Another, Change::Later] {
            let mut mutant = kernel.clone();
            let (mut left, mut done) = (site, None);
            let body = std::mem::take(&mut mutant.body);
            mutant.body = mutated(kernel, body, &mut left, change, &mut done, &mut there);
            if let Some((what, why)) = done {
                out.push((format!("{change:?} {what}"), mutant, why));
            }
        }
        if !there {
            return out;
        }
    }
    out
}

type Done = Option<(String, Option<&'static str>)>;

/// Statements with one changed, which is `left` further such statements on.
fn mutated(
    kernel: &Kernel,
    body: Vec<Stmt>,
    left: &mut usize,
    change: Change,
    done: &mut Done,
    there: &mut bool,
) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = Vec::with_capacity(body.len());
    let mut rest = body.into_iter();
    while let Some(mut s) = rest.next() {
        match &mut s {
            Stmt::For { body, .. } | Stmt::Loop { body } => {
                *body = mutated(kernel, std::mem::take(body), left, change, done, there);
            }
            Stmt::If { then, els, .. } => {
                *then = mutated(kernel, std::mem::take(then), left, change, done, there);
                *els = mutated(kernel, std::mem::take(els), left, change, done, there);
            }
            _ => {}
        }
        let all = changes(&s);
        if all.is_empty() || std::mem::replace(left, left.wrapping_sub(1)) != 0 {
            out.push(s);
            continue;
        }
        *there = true;
        if !all.contains(&change) {
            out.push(s);
            continue;
        }
        let what = statement(kernel, &s);
        match change {
            Change::Delete => *done = Some((what, needless(&s, out.last(), rest.as_slice()))),
            Change::Later => match rest.next() {
                Some(next) => {
                    *done = Some((
                        format!("{what}, behind {}", statement(kernel, &next)),
                        exchanged(kernel, out.last(), &s, &next),
                    ));
                    out.extend([next, s]);
                }
                None => out.push(s),
            },
            _ => {
                if let Some(other) = changed(kernel, &s, change) {
                    let once =
                        matches!(s, Stmt::Arrive { .. }) && change == Change::Another && arrivals(&kernel.body) == 1;
                    let read = change == Change::Another && of_readers(kernel, &s);
                    let why = match () {
                        _ if read => {
                            Some("who fills waits for the readers of a later iteration, and so for all before")
                        }
                        _ => once.then_some("each mbarrier still gets its one arrival before any thread waits"),
                    };
                    *done = Some((what, why));
                    s = other;
                }
                out.push(s);
            }
        }
    }
    out
}

fn statement(kernel: &Kernel, s: &Stmt) -> String {
    let one = Kernel { body: vec![s.clone()], ..kernel.clone() };
    let text = print::print(&one);
    let line = text.lines().rev().nth(1).unwrap_or("");
    let first = text.lines().find(|l| l.starts_with("  ") && !l.contains(" at ") && !l.starts_with("  tensor"));
    first.unwrap_or(line).trim().to_string()
}

const WAITS: &str = "the lanes wait for the mbarrier themselves";

/// Why a statement is not needed between others.
fn needless(s: &Stmt, before: Option<&Stmt>, then: &[Stmt]) -> Option<&'static str> {
    let barrier = matches!(s, Stmt::Barrier | Stmt::BarrierFirst { .. });
    match (before, then) {
        (_, [Stmt::WaitPhase { .. }, ..]) if *s == Stmt::SyncWarp => Some(WAITS),
        (_, [Stmt::If { then, .. }, ..]) if *s == Stmt::SyncWarp && matches!(then[..], [Stmt::WaitPhase { .. }]) => {
            Some(WAITS)
        }
        (Some(before), [Stmt::Fence { kind: Fence::AfterSync }, Stmt::If { then, .. }, ..])
            if barrier && of_first_thread(before) && matches!(then[..], [Stmt::Tcgen05Dealloc { .. }]) =>
        {
            Some("the threads have met since they loaded their columns")
        }
        _ => None,
    }
}

/// Returns true if the first thread fills slots that products in tensor memory read.
fn fills_for_products(kernel: &Kernel, s: &Stmt) -> bool {
    let (mut multiplies, mut fills) = (false, false);
    statements(&kernel.body, &mut |s| multiplies |= matches!(s, Stmt::Tcgen05Commit { .. }));
    statements(std::slice::from_ref(s), &mut |s| fills |= matches!(s, Stmt::TmaLoad { .. }));
    multiplies && fills && of_first_thread(s)
}

/// Why it does not matter which of two statements comes first; `before` stands before both.
fn exchanged(kernel: &Kernel, before: Option<&Stmt>, s: &Stmt, next: &Stmt) -> Option<&'static str> {
    match (s, next) {
        (Stmt::Barrier | Stmt::BarrierFirst { .. }, Stmt::WaitPhase { .. })
        | (Stmt::WaitPhase { .. }, Stmt::Barrier | Stmt::BarrierFirst { .. }) => {
            Some("every thread waits for the mbarrier itself")
        }
        (Stmt::WaitGroups { .. }, Stmt::WaitPhase { .. }) | (Stmt::WaitPhase { .. }, Stmt::WaitGroups { .. }) => {
            Some("both only wait")
        }
        (Stmt::Barrier, next) if fills_for_products(kernel, next) => {
            Some("the thread that fills has waited for the products itself")
        }
        _ if !touches(kernel, next) => Some("the other statement touches nothing that threads share"),
        (Stmt::Barrier | Stmt::BarrierFirst { .. }, _)
            if before.is_some_and(of_first_thread) && of_first_thread(next) =>
        {
            Some("one thread runs the statements before and behind the barrier")
        }
        (Stmt::Barrier, _) if before.is_some_and(of_first_thread) && begins_copies(next) => {
            Some("one thread runs the statements before the barrier, and the others only begin copies behind it")
        }
        _ => None,
    }
}

/// Returns true if an mbarrier counts the readers of a generation, which a warp of its own fills in turn.
fn of_readers(kernel: &Kernel, s: &Stmt) -> bool {
    let (Stmt::Arrive { on, bytes: None, .. } | Stmt::WaitPhase { on, .. } | Stmt::Tcgen05Commit { on }) = s else {
        return false;
    };
    matches!(on, Address::Slot { buf, .. } if kernel.slots[*buf].name.to_string() == "free")
}

/// The statements that arrive: where there is one, it is before the loop that waits.
fn arrivals(body: &[Stmt]) -> usize {
    let of = |s: &Stmt| match s {
        Stmt::Arrive { .. } => 1,
        Stmt::For { body, .. } | Stmt::Loop { body } => arrivals(body),
        Stmt::If { then, els, .. } => arrivals(then) + arrivals(els),
        _ => 0,
    };
    body.iter().map(of).sum()
}

/// Returns true if only the first thread of a block does anything.
fn of_first_thread(s: &Stmt) -> bool {
    match s {
        Stmt::If { mask, els, .. } => {
            els.is_empty()
                && mask.conds.iter().any(|c| (&c.lhs, c.cmp, &c.rhs) == (&Ix::Thread, Cmp::Eq, &Ix::Const(0)))
        }
        Stmt::For { body, .. } => body.iter().all(of_first_thread),
        _ => false,
    }
}

/// Returns true if threads other than the first only begin copies.
fn begins_copies(s: &Stmt) -> bool {
    match s {
        Stmt::CopyAsync { .. } | Stmt::Commit | Stmt::Index { .. } | Stmt::Let { .. } | Stmt::Test { .. } => true,
        Stmt::For { body, .. } => body.iter().all(begins_copies),
        Stmt::If { then, els, .. } => of_first_thread(s) || then.iter().chain(els).all(begins_copies),
        _ => false,
    }
}

/// Returns true if a statement waits, or touches memory that threads share.
fn touches(kernel: &Kernel, s: &Stmt) -> bool {
    let shared = |place: &Address| match place {
        Address::Mem { .. } => true,
        Address::Slot { buf, .. } => kernel.slots[*buf].space != Space::Scratch,
    };
    match s {
        Stmt::Load { place: Address::Mem { base, .. }, .. } => stores(kernel, &kernel.body, *base),
        Stmt::Load { place, .. } | Stmt::Store { place, .. } | Stmt::LoadMatrix { place, .. } => shared(place),
        Stmt::For { body, .. } | Stmt::Loop { body } => body.iter().any(|s| touches(kernel, s)),
        Stmt::If { then, els, .. } => then.iter().chain(els).any(|s| touches(kernel, s)),
        Stmt::Commit
        | Stmt::Fence { kind: Fence::Registers | Fence::BeforeSync | Fence::AfterSync }
        | Stmt::Let { .. }
        | Stmt::Index { .. }
        | Stmt::Test { .. }
        | Stmt::Var { .. }
        | Stmt::Set { .. } => false,
        Stmt::Shuffle { .. } | Stmt::Mma { .. } | Stmt::Lane { .. } | Stmt::SetLane { .. } | Stmt::Splat { .. } => {
            false
        }
        _ => true,
    }
}

/// Returns true if a kernel may write to an array.
fn stores(kernel: &Kernel, body: &[Stmt], array: ValId) -> bool {
    body.iter().any(|s| match s {
        Stmt::Store { place: Address::Mem { base, .. }, .. }
        | Stmt::Rmw { place: Address::Mem { base, .. }, .. }
        | Stmt::Cas { place: Address::Mem { base, .. }, .. } => *base == array,
        Stmt::TmaStore { tensor, .. } => kernel.tensors[*tensor].base == array,
        Stmt::For { body, .. } | Stmt::Loop { body } => stores(kernel, body, array),
        Stmt::If { then, els, .. } => stores(kernel, then, array) || stores(kernel, els, array),
        _ => false,
    })
}

#[derive(Default)]
struct Tally {
    kernels: usize,
    killed: usize,
    equivalent: BTreeMap<&'static str, usize>,
    survived: Vec<String>,
}

impl Tally {
    /// Runs every mutant of a kernel.
    fn program(&mut self, program: &Program) {
        self.kernels += 1;
        let want = simulate(program, &program.lowered.kernel, 0).unwrap_or_else(|| panic!("{}", program.name));
        for seed in 0..SEEDS {
            let clean = simulate(program, &program.lowered.kernel, seed).as_ref() == Some(&want);
            assert!(clean, "{}, seed {seed}", program.name);
        }
        for (what, mutant, why) in mutants(&program.lowered.kernel) {
            let noticed = (0..SEEDS).any(|seed| simulate(program, &mutant, seed).as_ref() != Some(&want));
            match (noticed, why) {
                (true, _) => self.killed += 1,
                (false, Some(why)) => *self.equivalent.entry(why).or_default() += 1,
                (false, None) => {
                    println!("survived: {}: {what}", program.name);
                    self.survived.push(format!("{}: {what}", program.name));
                }
            }
        }
    }
}

#[test]
fn every_derived_statement_is_needed() {
    let word = std::env::var("MUTANTS").unwrap_or_default();
    let all = !word.is_empty();
    let is_meant = |text: &str| matches!(&word[..], "" | "all") || text.contains(&word);
    let mut tally = Tally::default();
    for (text, knobs, targets) in CLUSTERED.iter().filter(|(text, ..)| is_meant(text)) {
        for target in *targets {
            programs_in_clusters(text, target, knobs).iter().for_each(|program| tally.program(program));
        }
    }
    let mut turn = 0;
    for text in MODELS.iter().filter(|text| is_meant(text)) {
        let pipelined = text.contains('@') || text.contains("Linear");
        for knobs in &KNOBS[..if pipelined { KNOBS.len() } else { 1 }] {
            let targets = match turn % 8 {
                _ if all => &TARGETS[..],
                0 | 5 => std::slice::from_ref(&TARGETS[turn % 2]),
                _ => &[],
            };
            turn += 1;
            for target in targets {
                programs(text, target, knobs).iter().for_each(|program| tally.program(program));
            }
        }
    }
    for (text, knobs) in GROUPED.iter().filter(|(text, _)| is_meant(text)) {
        for program in programs(text, "sm_90a", knobs) {
            assert!(print::print(&program.lowered.kernel).contains("wgmma commit"), "{}", program.name);
            tally.program(&program);
        }
    }
    for (text, knobs) in IN_TENSOR_MEMORY.iter().filter(|(text, _)| is_meant(text)) {
        for program in programs(text, "sm_100a", knobs) {
            assert!(print::print(&program.lowered.kernel).contains("tcgen05 commit"), "{}", program.name);
            tally.program(&program);
        }
    }
    for (text, knobs, target, workers) in IN_TURN.iter().filter(|(text, ..)| is_meant(text)) {
        for target in if all { &TARGETS[..] } else { std::slice::from_ref(target) } {
            programs_in_turn(text, target, knobs, *workers).iter().for_each(|program| tally.program(program));
        }
    }
    let Tally { kernels, killed, equivalent, survived } = tally;
    let others: usize = equivalent.values().sum();
    println!("{kernels} kernels: {killed} mutants killed, {others} equivalent, {} survived", survived.len());
    equivalent.iter().for_each(|(why, n)| println!("{n} equivalent: {why}"));
    assert!(survived.is_empty(), "{}", survived.join("\n"));
    assert!(killed >= 200 || !matches!(&word[..], "" | "all"), "{killed}");
}
