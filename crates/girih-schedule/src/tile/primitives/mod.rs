//! Primitives of a schedule: each changes the loops of a kernel in one way, and has one rule for when that is legal.
//!
//! In: a kernel, and a [`Step`] that names loops or buffers of it. Out: the kernel changed, or a sentence that says why not. What
//! the kernel computes stays as it is. Rules choose steps ([`Script`]); a person writes them as text ([`mod@line`], `tile::schedule`).
//!
//! ```text
//! fuse i, j -> b          split k by 256 -> kt, kk          unroll c
//! bind b to block.x       bind kk to thread 256             pipeline kt by 3
//! ```

pub mod approximate;
pub mod bind;
pub mod blocks;
pub mod bound;
pub mod count;
pub mod digits;
pub mod distribute;
pub mod fill;
pub mod fuse;
pub mod hoist;
pub mod interleave;
pub mod jam;
pub mod layout;
pub mod keep;
pub mod line;
pub mod model;
pub mod normalize;
pub mod own;
pub mod pair;
pub mod peel;
pub mod pipeline;
pub mod prefetch;
pub mod privatise;
pub mod promote;
pub mod recompute;
pub mod reorder;
pub mod retype;
pub mod reverse;
pub mod rfactor;
pub mod scan;
pub mod serial;
pub mod sink;
pub mod split;
pub mod stage_read;
pub mod stage_row;
pub mod stage_write;
pub mod tensorize;
pub mod tile;
pub mod trim;
pub mod turn;
pub mod unbatch;
pub mod unroll;
pub mod unswitch;
pub mod vector;
pub mod windows;

use rustc_hash::FxHashMap;

use crate::base::rule::Log;
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::num::DType;
use crate::tile::Context;
use blocks::Order;
use fill::Engine;
use line::Scope;
pub use line::{Line, LoopRef, find, look, look_where};
use stage_read::{How, Side};
use stage_write::By;
use tensorize::Unit;

/// One change of a kernel's loops.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Unroll { loops: Vec<LoopRef> },
    Vector { loops: Vec<LoopRef>, lanes: u32, ways: u32 },
    Bind { loops: Vec<LoopRef>, to: bind::To },
    Fuse { loops: Vec<LoopRef>, name: String },
    Reorder { loops: Vec<LoopRef> },
    Split { at: LoopRef, size: u32, names: [String; 2], guard: bool },
    Rfactor { at: LoopRef, size: u32, names: [String; 2] },
    RfactorInTurn { at: LoopRef, parts: u32, size: u32, names: Vec<String> },
    Scan { at: LoopRef, threads: u32, each: u32 },
    Turn { loops: Vec<LoopRef>, size: u32 },
    Digits { at: LoopRef, counts: Vec<u32>, names: Vec<String>, unroll: bool },
    Distribute { at: LoopRef },
    Interleave { at: LoopRef },
    Jam { at: LoopRef, together: u32 },
    Serial { loops: Vec<LoopRef> },
    Privatise { loops: Vec<LoopRef> },
    Sink { at: LoopRef },
    Hoist { at: LoopRef },
    Peel { at: LoopRef },
    Unswitch { at: LoopRef },
    Trim { loops: Vec<LoopRef> },
    Enclose { loops: Vec<LoopRef>, name: String },
    Group { at: LoopRef, rows: u32 },
    Cluster { at: LoopRef, blocks: u32 },
    Persist { at: LoopRef, blocks: u32 },
    Pipeline { at: LoopRef, depth: u32, roles: bool, overlap: bool },
    StageRead { at: LoopRef, side: Side, how: How },
    Prefetch { at: LoopRef, ahead: u32 },
    StageRow { loops: Vec<LoopRef> },
    Keep { buf: BufId, slots: u32 },
    Own { bufs: Vec<BufId>, threads: u32, rolled: bool },
    Reverse { loops: Vec<LoopRef> },
    Retype { buf: BufId, to: DType },
    Approximate { loops: Vec<LoopRef> },
    Normalize { loops: Vec<LoopRef> },
    Fill { bufs: Vec<BufId>, by: Engine },
    Tensorize { loops: Vec<LoopRef>, unit: Unit },
    StageWrite { bufs: Vec<BufId> },
    StageResults { at: LoopRef, by: stage_write::By },
    Tile { at: LoopRef, m: u32, n: u32, k: u32 },
    Stream { at: LoopRef, rows: u32, keys: u32 },
    Unbatch { buf: BufId },
    Box { buf: BufId, columns: u32 },
    Swizzle { buf: BufId, bytes: u32 },
    Pad { buf: BufId, elements: u32 },
    Pair { loops: Vec<LoopRef> },
    Windows { at: LoopRef, together: u32 },
    Count { at: LoopRef, by: count::By },
    Recompute { buf: BufId },
    Bound { memories: Vec<ValId> },
    Promote { memory: ValId, shape: Vec<u64> },
}

/// The bytes of the buffers that a step makes, at most.
const MOST_BYTES: u64 = 1 << 28;

/// Every primitive, in the order of the alphabet. `docs/schedule.md` has the form and the meaning of each.
pub const ALL: &[&str] = &[
    "approximate",
    "bind",
    "bound",
    "box",
    "cluster",
    "count",
    "digits",
    "distribute",
    "enclose",
    "fill",
    "fuse",
    "group",
    "hoist",
    "interleave",
    "jam",
    "keep",
    "normalize",
    "own",
    "pad",
    "pair",
    "peel",
    "persist",
    "pipeline",
    "prefetch",
    "privatise",
    "promote",
    "recompute",
    "reorder",
    "retype",
    "reverse",
    "rfactor",
    "scan",
    "serial",
    "sink",
    "split",
    "stage_read",
    "stage_row",
    "stage_write",
    "swizzle",
    "tensorize",
    "tile",
    "trim",
    "turn",
    "unbatch",
    "unroll",
    "unswitch",
    "vector",
    "windows",
];

const DIMS: [&str; 3] = ["block.x", "block.y", "block.z"];

impl Step {
    /// The step as text, in the names of the kernel that it is for.
    pub fn line(&self, kernel: &Kernel) -> Line {
        let scope = Scope::new(kernel);
        let one = |at: &LoopRef| vec![scope.name_of(*at)];
        let buffer = |buf: &BufId| vec![scope.buffer_name(*buf)];
        let flag = |on: bool, word: &'static str| if on { word } else { "" };
        match self {
            Step::Unroll { loops } => Line::new("unroll", scope.names_of(loops), &[], &[]),
            Step::Vector { loops, lanes, ways: 1 } => Line::new("vector", scope.names_of(loops), &[lanes], &[]),
            Step::Vector { loops, lanes, ways } => {
                Line::new("vector", scope.names_of(loops), &[lanes, &"x", ways], &[])
            }
            Step::Bind { loops, to } => {
                let loops = scope.names_of(loops);
                let line = match to {
                    bind::To::Block(dim) => Line::new("bind", loops, &[&DIMS[usize::from(*dim).min(2)]], &[]),
                    bind::To::Threads => Line::new("bind", loops, &[&"thread"], &[]),
                    bind::To::Lanes => Line::new("bind", loops, &[&"lanes"], &[]),
                    bind::To::Cluster(n) => Line::new("bind", loops, &[&"cluster", n], &[]),
                    bind::To::Shared(n) => Line::new("bind", loops, &[&"thread", n], &[]),
                };
                line.with("to")
            }
            Step::Fuse { loops, name } => Line::new("fuse", scope.names_of(loops), &[], &[name]),
            Step::Split { at, size, names: [outer, inner], guard } => {
                Line::new("split", one(at), &[size, &flag(*guard, "guard")], &[outer, inner])
            }
            Step::Rfactor { at, size, names: [outer, inner] } => {
                Line::new("rfactor", one(at), &[size], &[outer, inner])
            }
            Step::RfactorInTurn { at, parts, size, names } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Line::new("rfactor", one(at), &[parts, &"x", size], &names)
            }
            Step::Scan { at, threads, each } => Line::new("scan", one(at), &[threads, &"x", each], &[]),
            Step::Turn { loops, size } => Line::new("turn", scope.names_of(loops), &[size], &[]),
            Step::Digits { at, counts, names, unroll } => {
                let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
                let by = counts.join(" x ") + if *unroll { " unroll" } else { "" };
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Line::new("digits", one(at), &[&by], &names)
            }
            Step::Distribute { at } => Line::new("distribute", one(at), &[], &[]),
            Step::Interleave { at } => Line::new("interleave", one(at), &[], &[]),
            Step::Jam { at, together } => Line::new("jam", one(at), &[together], &[]),
            Step::Reorder { loops } => Line::new("reorder", scope.names_of(loops), &[], &[]),
            Step::Serial { loops } => Line::new("serial", scope.names_of(loops), &[], &[]),
            Step::Privatise { loops } => Line::new("privatise", scope.names_of(loops), &[], &[]),
            Step::Normalize { loops } => Line::new("normalize", scope.names_of(loops), &[], &[]),
            Step::Approximate { loops } => Line::new("approximate", scope.names_of(loops), &[], &[]),
            Step::Sink { at } => Line::new("sink", one(at), &[], &[]),
            Step::Hoist { at } => Line::new("hoist", one(at), &[], &[]),
            Step::Peel { at } => Line::new("peel", one(at), &[], &[]),
            Step::Unswitch { at } => Line::new("unswitch", one(at), &[], &[]),
            Step::Trim { loops } => Line::new("trim", scope.names_of(loops), &[], &[]),
            Step::Enclose { loops, name } => Line::new("enclose", scope.names_of(loops), &[], &[name]),
            Step::Group { at, rows: n } => Line::new("group", one(at), &[n], &[]),
            Step::Cluster { at, blocks: n } => Line::new("cluster", one(at), &[n], &[]),
            Step::Persist { at, blocks: n } => Line::new("persist", one(at), &[n], &[]),
            Step::Pipeline { at, depth, roles, overlap } => {
                Line::new("pipeline", one(at), &[depth, &flag(*roles, "roles"), &flag(*overlap, "overlap")], &[])
            }
            Step::StageRead { at, side, how } => {
                let words = how.words();
                let by = [side.name()].into_iter().chain(words.iter().map(String::as_str));
                Line { by: by.map(String::from).collect(), ..Line::new("stage_read", one(at), &[], &[]) }
            }
            Step::Tile { at, m, n, k } => Line::new("tile", one(at), &[m, &"x", n, &"x", k], &[]),
            Step::Stream { at, rows, keys } => Line::new("tile", one(at), &[rows, &"x", keys], &[]),
            Step::Prefetch { at, ahead } => Line::new("prefetch", one(at), &[ahead], &[]),
            Step::StageRow { loops } => Line::new("stage_row", scope.names_of(loops), &[], &[]),
            Step::Keep { buf, slots } => Line::new("keep", buffer(buf), &[slots], &[]),
            Step::Own { bufs, threads, rolled } => {
                let names = bufs.iter().map(|b| scope.buffer_name(*b)).collect();
                Line::new("own", names, &[threads, &flag(*rolled, "rolled")], &[])
            }
            Step::Reverse { loops } => Line::new("reverse", scope.names_of(loops), &[], &[]),
            Step::Retype { buf, to } => Line::new("retype", buffer(buf), &[&to.name()], &[]).with("to"),
            Step::Fill { bufs, by } => {
                Line::new("fill", bufs.iter().map(|b| scope.buffer_name(*b)).collect(), &[&by.name()], &[])
            }
            Step::Tensorize { loops, unit } => {
                Line { by: unit.words(), ..Line::new("tensorize", scope.names_of(loops), &[], &[]).with("as") }
            }
            Step::StageWrite { bufs } => {
                Line::new("stage_write", bufs.iter().map(|b| scope.buffer_name(*b)).collect(), &[], &[])
            }
            Step::StageResults { at, by } => Line::new("stage_write", one(at), &[&by.name()], &[]),
            Step::Unbatch { buf } => Line::new("unbatch", buffer(buf), &[], &[]),
            Step::Box { buf, columns } => Line::new("box", buffer(buf), &[columns], &[]),
            Step::Swizzle { buf, bytes } => Line::new("swizzle", buffer(buf), &[bytes], &[]),
            Step::Pad { buf, elements } => Line::new("pad", buffer(buf), &[elements], &[]),
            Step::Pair { loops } => Line::new("pair", scope.names_of(loops), &[], &[]),
            Step::Windows { at, together } => Line::new("windows", one(at), &[together], &[]),
            Step::Count { at, by: count::By::Copies(n) } => Line::new("count", one(at), &[n], &[]),
            Step::Count { at, by: count::By::Shared } => Line::new("count", one(at), &[&"shared"], &[]),
            Step::Recompute { buf } => Line::new("recompute", buffer(buf), &[], &[]),
            Step::Bound { memories } => {
                Line::new("bound", memories.iter().map(|v| scope.memory_name(*v)).collect(), &[], &[])
            }
            Step::Promote { memory, shape } => {
                let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
                Line::new("promote", vec![scope.memory_name(*memory)], &[&shape.join(" x ")], &[])
            }
        }
    }

    /// The step that a line states of a kernel.
    pub fn read(line: &Line, kernel: &Kernel) -> Result<Step, String> {
        let scope = Scope::new(kernel);
        let number = |what: &str, least: u32| {
            line.flags(1, [])?;
            line.number(0, what, least)
        };
        let word = |known: &[&'static str], from: usize| match line.by.get(from) {
            Some(word) if known.contains(&word.as_str()) => Ok(()),
            Some(word) => Err(format!("unexpected `{word}`; expected {}", known.join(" or "))),
            None => Err(format!("expected `by` and {}", known.join(" or "))),
        };
        let step = match line.word.as_str() {
            "unroll" => Step::Unroll { loops: scope.loops(line)? },
            "vector" => {
                let loops = scope.loops(line)?;
                let lanes = line.number(0, "a number of lanes", 2)?;
                let ways = match line.by.len() {
                    0..=1 => 1,
                    _ => {
                        word(&["x"], 1)?;
                        line.number(2, "a number of vectors", 1)?
                    }
                };
                Step::Vector { loops, lanes, ways }
            }
            "bind" => {
                // A block that threads share may have no loop.
                let shared = line.by.first().is_some_and(|w| w == "thread") && line.by.len() > 1;
                let loops = if line.targets.is_empty() && shared { vec![] } else { scope.loops(line)? };
                let to = match line.by.first().map(String::as_str) {
                    Some("thread") if shared => bind::To::Shared(line.number(1, "a number of threads", 1)?),
                    Some("thread") => bind::To::Threads,
                    Some("lanes") => bind::To::Lanes,
                    Some("cluster") => bind::To::Cluster(line.number(1, "a number of blocks", 2)?),
                    Some(to) if DIMS.contains(&to) => {
                        bind::To::Block(DIMS.iter().position(|d| *d == to).unwrap_or(0) as u8)
                    }
                    Some(to) => {
                        let known = suggestion("places", to, DIMS.into_iter().chain(["thread", "lanes", "cluster"]));
                        return Err(format!("unknown place `{to}`; {known}"));
                    }
                    None => {
                        return Err(
                            "expected `to` and `thread`, `lanes`, `cluster` or one of `block.x`, `block.y`, `block.z`"
                                .into(),
                        );
                    }
                };
                Step::Bind { loops, to }
            }
            "fuse" => {
                let [name] = line.made("the name of the loop that it makes")?;
                Step::Fuse { loops: scope.loops(line)?, name: name.into() }
            }
            "split" => {
                let names = line.made::<2>("the names of the two loops that it makes")?.map(String::from);
                let at = scope.loop_of(line)?;
                let size = line.number(0, "how many iterations a piece has", 1)?;
                let [guard] = line.flags(1, ["guard"])?;
                Step::Split { at, size, names, guard }
            }
            "rfactor" if line.by.len() == 3 => {
                word(&["x"], 1)?;
                let [parts, size] = [(0, "results"), (2, "iterations")].map(|(at, what)| line.number(at, what, 1));
                let (parts, size) = (parts?, size?);
                if line.made.len() != 2 + usize::from(size > 1) {
                    let stretch = if size > 1 { " and the iterations of a stretch" } else { "" };
                    return Err(format!(
                        "expected `->` and the names of the loops over the results, their stretches{stretch}"
                    ));
                }
                Step::RfactorInTurn { at: scope.loop_of(line)?, parts, size, names: line.made.clone() }
            }
            "rfactor" => {
                let names = line.made::<2>("the names of the two loops that it makes")?.map(String::from);
                Step::Rfactor { at: scope.loop_of(line)?, size: number("how many iterations a stretch has", 1)?, names }
            }
            "scan" => {
                word(&["x"], 1)?;
                let [threads, each] = [(0, "threads"), (2, "elements")].map(|(at, what)| line.number(at, what, 1));
                Step::Scan { at: scope.loop_of(line)?, threads: threads?, each: each? }
            }
            "turn" => Step::Turn { loops: scope.loops(line)?, size: number("how long the side of a block is", 2)? },
            "digits" => {
                let unroll = line.by.last().is_some_and(|w| w == "unroll");
                let counts = line.counts(line.by.len() - usize::from(unroll), "a count", 2)?;
                if counts.len() + 1 != line.made.len() || counts.is_empty() {
                    return Err("expected `by` and counts, and `->` and a name more than there are counts".into());
                }
                Step::Digits { at: scope.loop_of(line)?, counts, names: line.made.clone(), unroll }
            }
            "distribute" => Step::Distribute { at: scope.loop_of(line)? },
            "interleave" => Step::Interleave { at: scope.loop_of(line)? },
            "jam" => Step::Jam { at: scope.loop_of(line)?, together: number("how many iterations go together", 2)? },
            "reorder" => Step::Reorder { loops: scope.loops(line)? },
            "serial" => Step::Serial { loops: scope.loops(line)? },
            "privatise" => Step::Privatise { loops: scope.loops(line)? },
            "normalize" => Step::Normalize { loops: scope.loops(line)? },
            "approximate" => Step::Approximate { loops: scope.loops(line)? },
            "sink" => Step::Sink { at: scope.loop_of(line)? },
            "hoist" => Step::Hoist { at: scope.loop_of(line)? },
            "peel" => Step::Peel { at: scope.loop_of(line)? },
            "unswitch" => Step::Unswitch { at: scope.loop_of(line)? },
            "trim" => Step::Trim { loops: scope.loops(line)? },
            "enclose" => {
                let [name] = line.made("the name of the loop that it makes")?;
                let loops = if line.targets.is_empty() { vec![] } else { scope.loops(line)? };
                Step::Enclose { loops, name: name.into() }
            }
            "group" => Step::Group { at: scope.loop_of(line)?, rows: number("how many rows a group has", 1)? },
            "cluster" => {
                Step::Cluster { at: scope.loop_of(line)?, blocks: number("how many blocks a cluster has", 2)? }
            }
            "persist" => Step::Persist { at: scope.loop_of(line)?, blocks: number("how many blocks there are", 1)? },
            "pipeline" => {
                let at = scope.loop_of(line)?;
                let depth = line.number(0, "how many slots there are", 1)?;
                let [roles, overlap] = line.flags(1, ["roles", "overlap"])?;
                Step::Pipeline { at, depth, roles, overlap }
            }
            "stage_read" => {
                let side = match line.by.first().map(String::as_str) {
                    Some("a") => Side::A,
                    Some("b") => Side::B,
                    Some(word) => return Err(format!("unknown operand `{word}`; expected a or b")),
                    None => return Err("expected `by` and the operand: a or b".into()),
                };
                Step::StageRead { at: scope.loop_of(line)?, side, how: How::read(&line.by[1..])? }
            }
            "tile" if line.by.len() == 3 => {
                word(&["x"], 1)?;
                let [rows, keys] = [(0, "rows"), (2, "keys")].map(|(at, what)| line.number(at, what, 1));
                Step::Stream { at: scope.loop_of(line)?, rows: rows?, keys: keys? }
            }
            "tile" => {
                word(&["x"], 1)?;
                word(&["x"], 3)?;
                let [m, n, k] = [(0, "rows"), (2, "columns"), (4, "terms")].map(|(at, what)| line.number(at, what, 1));
                Step::Tile { at: scope.loop_of(line)?, m: m?, n: n?, k: k? }
            }
            "prefetch" => {
                Step::Prefetch { at: scope.loop_of(line)?, ahead: number("how many iterations ahead it asks", 1)? }
            }
            "stage_row" => Step::StageRow { loops: scope.loops(line)? },
            "keep" => Step::Keep { buf: scope.buffer(line)?, slots: number("how many copies stay", 2)? },
            "own" => {
                let threads = line.number(0, "a number of threads", 1)?;
                let [rolled] = line.flags(1, ["rolled"])?;
                Step::Own { bufs: scope.buffers(line)?, threads, rolled }
            }
            "reverse" => Step::Reverse { loops: scope.loops(line)? },
            "retype" => {
                let [name] = &line.by[..] else { return Err("expected `to` and a type".into()) };
                let all = || DType::ALL.into_iter().map(DType::name);
                let to = DType::from_name(name)
                    .ok_or_else(|| format!("unknown type `{name}`; {}", suggestion("types", name, all())))?;
                Step::Retype { buf: scope.buffer(line)?, to }
            }
            "fill" => {
                word(&["async", "tma"], 0)?;
                let by = Engine::ALL.into_iter().find(|e| line.by.first().is_some_and(|w| w == e.name()));
                Step::Fill { bufs: scope.buffers(line)?, by: by.unwrap_or(Engine::Async) }
            }
            "tensorize" => Step::Tensorize { loops: scope.loops(line)?, unit: Unit::read(&line.by)? },
            "stage_write" if line.by.is_empty() => Step::StageWrite { bufs: scope.buffers(line)? },
            "stage_write" => {
                word(&["shared", "tma"], 0)?;
                line.flags(1, [])?;
                let by = By::ALL.into_iter().find(|by| line.by.first().is_some_and(|w| w == by.name()));
                Step::StageResults { at: scope.loop_of(line)?, by: by.unwrap_or(By::Threads) }
            }
            "unbatch" => Step::Unbatch { buf: scope.buffer(line)? },
            "box" => Step::Box { buf: scope.buffer(line)?, columns: number("how many columns a box has", 1)? },
            "swizzle" => Step::Swizzle { buf: scope.buffer(line)?, bytes: number("the bytes of a row", 32)? },
            "pad" => Step::Pad { buf: scope.buffer(line)?, elements: number("how many elements longer a row is", 1)? },
            "pair" => Step::Pair { loops: scope.loops(line)? },
            "windows" => {
                Step::Windows { at: scope.loop_of(line)?, together: number("how many neighbours go together", 1)? }
            }
            "count" if line.by == ["shared"] => Step::Count { at: scope.loop_of(line)?, by: count::By::Shared },
            "count" => {
                let copies = number("how many copies of the bins there are", 1)?;
                Step::Count { at: scope.loop_of(line)?, by: count::By::Copies(copies) }
            }
            "recompute" => Step::Recompute { buf: scope.buffer(line)? },
            "bound" => Step::Bound { memories: scope.memories(line)? },
            "promote" => {
                let [memory] = scope.memories(line)?[..] else { return Err("`promote` takes one memory".into()) };
                let shape = line.counts(line.by.len(), "a number of elements", 1)?;
                if shape.is_empty() {
                    return Err("expected `by` and a shape".into());
                }
                Step::Promote { memory, shape: shape.into_iter().map(u64::from).collect() }
            }
            other if model::ALL.contains(&other) => {
                return Err(format!("`{other}` is a step of the section `model`"));
            }
            other => {
                let words = ALL.iter().copied().chain(["policy"]);
                return Err(format!("unknown primitive `{other}`; {}", suggestion("primitives", other, words)));
            }
        };
        Ok(step)
    }

    /// Changes the kernel; gives the axes of the loops that the step makes. Where it refuses, the kernel is to be thrown away.
    pub fn apply(&self, kernel: &mut Kernel, ctx: &Context) -> Result<Vec<AxisId>, String> {
        let from = kernel.axes.len();
        match self {
            Step::Unroll { loops } => unroll::apply(kernel, loops)?,
            Step::Vector { loops, lanes, ways } => vector::apply(kernel, ctx, loops, *lanes, *ways)?,
            Step::Bind { loops, to } => bind::apply(kernel, ctx, loops, *to)?,
            Step::Fuse { loops, name } => fuse::apply(kernel, loops, name)?,
            Step::Split { at, size, names, guard } => split::apply(kernel, *at, (*size).into(), names, *guard)?,
            Step::Rfactor { at, size, names } => rfactor::apply(kernel, *at, *size, names)?,
            Step::RfactorInTurn { at, parts, size, names } => {
                rfactor::in_turn::apply(kernel, *at, [*parts, *size], names)?;
            }
            Step::Scan { at, threads, each } => scan::apply(kernel, *at, *threads, *each)?,
            Step::Turn { loops, size } => turn::apply(kernel, loops, *size)?,
            Step::Digits { at, counts, names, unroll } => digits::apply(kernel, *at, counts, names, *unroll)?,
            Step::Distribute { at } => distribute::apply(kernel, *at)?,
            Step::Interleave { at } => interleave::apply(kernel, *at)?,
            Step::Jam { at, together } => jam::apply(kernel, *at, *together)?,
            Step::Reorder { loops } => reorder::apply(kernel, loops)?,
            Step::Serial { loops } => serial::apply(kernel, loops)?,
            Step::Privatise { loops } => privatise::apply(kernel, loops)?,
            Step::Normalize { loops } => normalize::apply(kernel, loops)?,
            Step::Approximate { loops } => approximate::apply(kernel, ctx, loops)?,
            Step::Sink { at } => sink::apply(kernel, *at)?,
            Step::Hoist { at } => hoist::apply(kernel, *at)?,
            Step::Peel { at } => peel::apply(kernel, *at)?,
            Step::Unswitch { at } => unswitch::apply(kernel, *at)?,
            Step::Trim { loops } => trim::apply(kernel, loops)?,
            Step::Enclose { loops, name } => bind::enclose(kernel, loops, name)?,
            Step::Group { at, rows } => blocks::apply(kernel, ctx, *at, Order::Group(*rows))?,
            Step::Cluster { at, blocks } => blocks::apply(kernel, ctx, *at, Order::Cluster(*blocks))?,
            Step::Persist { at, blocks } => blocks::apply(kernel, ctx, *at, Order::Persist(*blocks))?,
            Step::Pipeline { at, depth, roles, overlap } => {
                pipeline::apply(kernel, ctx, *at, *depth, *roles, *overlap)?;
            }
            Step::StageRead { at, side, how } => stage_read::apply(kernel, ctx, *at, *side, *how)?,
            Step::Tile { at, m, n, k } => tile::apply(kernel, ctx, *at, [*m, *n, *k])?,
            Step::Stream { at, rows, keys } => tile::stream(kernel, *at, [*rows, *keys])?,
            Step::Prefetch { at, ahead } => prefetch::apply(kernel, ctx, *at, *ahead)?,
            Step::StageRow { loops } => stage_row::apply(kernel, loops)?,
            Step::Keep { buf, slots } => keep::apply(kernel, ctx, *buf, *slots)?,
            Step::Own { bufs, threads, rolled } => own::apply(kernel, ctx, bufs, *threads, *rolled)?,
            Step::Reverse { loops } => reverse::apply(kernel, loops)?,
            Step::Retype { buf, to } => retype::apply(kernel, *buf, *to)?,
            Step::Fill { bufs, by } => fill::apply(kernel, ctx, bufs, *by)?,
            Step::Tensorize { loops, unit } => tensorize::apply(kernel, ctx, loops, *unit)?,
            Step::StageWrite { bufs } => stage_write::apply(kernel, bufs)?,
            Step::StageResults { at, by } => stage_write::results(kernel, ctx, *at, *by)?,
            Step::Unbatch { buf } => unbatch::apply(kernel, *buf)?,
            Step::Box { buf, columns } => layout::in_boxes(kernel, *buf, *columns)?,
            Step::Swizzle { buf, bytes } => layout::swizzle(kernel, *buf, *bytes)?,
            Step::Pad { buf, elements } => layout::pad(kernel, ctx, *buf, *elements)?,
            Step::Pair { loops } => pair::apply(kernel, ctx, loops, &|_| false)?,
            Step::Windows { at, together } => windows::apply(kernel, ctx, *at, *together)?,
            Step::Count { at, by } => count::apply(kernel, ctx, *at, *by)?,
            Step::Recompute { buf } => recompute::apply(kernel, ctx, *buf)?,
            Step::Bound { memories } => bound::apply(kernel, ctx.check, memories)?,
            Step::Promote { memory, shape } => promote::apply(kernel, *memory, shape)?,
        }
        Ok(kernel.axes.keys().skip(from).collect())
    }
}

/// The steps of a rule, each applied where it is added, so that the next may name what it made.
pub struct Script<'a> {
    pub kernel: Kernel,
    pub ctx: &'a Context,
    pub log: &'a mut Log,
    changed: bool,
}

impl<'a> Script<'a> {
    pub fn new(p: &Kernel, ctx: &'a Context, log: &'a mut Log) -> Script<'a> {
        Script { kernel: p.clone(), ctx, log, changed: false }
    }

    /// Applies a step and gives the loops that it made, in the order of their names.
    pub fn step(&mut self, step: Step) -> Result<Vec<LoopRef>, String> {
        if self.log.record {
            self.log.steps.push(step.line(&self.kernel).to_string());
        }
        let made = step.apply(&mut self.kernel, self.ctx)?;
        self.changed = true;
        Ok(made.into_iter().map(|axis| LoopRef { axis, nth: 0 }).collect())
    }

    /// Makes several steps, or none where one is refused.
    pub fn attempt<T>(&mut self, f: impl FnOnce(&mut Script<'a>) -> Result<T, String>) -> Result<T, String> {
        let (kernel, steps, changed) = (self.kernel.clone(), self.log.steps.len(), self.changed);
        let done = f(self);
        if done.is_err() {
            (self.kernel, self.changed) = (kernel, changed);
            self.log.steps.truncate(steps);
        }
        done
    }

    /// The loop of that name, as it is now.
    pub fn find(&self, name: LoopRef) -> Option<For> {
        find(&self.kernel, name).cloned()
    }

    pub fn changed(&self) -> bool {
        self.changed
    }

    /// The changed kernel; `None` where no step was made.
    pub fn done(self) -> Option<Kernel> {
        self.changed.then_some(self.kernel)
    }
}

/// What a rule does that chooses all its steps beforehand.
pub fn run(
    p: &Kernel,
    ctx: &Context,
    log: &mut Log,
    policy: fn(&Kernel, &Context, &mut Log) -> Vec<Step>,
) -> Option<Kernel> {
    let steps = policy(p, ctx, log);
    if steps.is_empty() {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    for step in steps {
        if let Err(why) = script.attempt(|script| script.step(step)) {
            script.log.skipped("a step", why);
        }
    }
    script.done()
}

/// The names that steps have for the loops of a kernel.
pub struct Names(FxHashMap<*const For, LoopRef>);

impl Names {
    pub fn of(kernel: &Kernel) -> Names {
        let mut names = FxHashMap::default();
        look(kernel, &mut |at, f| names.insert(std::ptr::from_ref(f), at).is_none());
        Names(names)
    }

    /// The name of a loop of that kernel.
    pub fn name(&self, f: &For) -> Option<LoopRef> {
        self.0.get(&std::ptr::from_ref(f)).copied()
    }
}

/// The names of loops with these axes that stand in each other, from a loop on.
pub fn names_behind(kernel: &Kernel, at: LoopRef, axes: &[AxisId]) -> Vec<LoopRef> {
    let (mut within, mut out) = (false, vec![]);
    look(kernel, &mut |own, f| {
        within |= own == at;
        if within && axes.get(out.len()) == Some(&f.axis) {
            out.push(own);
        }
        out.len() < axes.len()
    });
    out
}

/// The names that steps have for some loops of a kernel.
pub fn names_of(kernel: &Kernel, loops: &[&For]) -> Vec<LoopRef> {
    let mut out = vec![];
    look(kernel, &mut |at, f| {
        if loops.iter().any(|l| std::ptr::eq(*l, f)) {
            out.push(at);
        }
        true
    });
    out
}

#[cfg(test)]
mod tests;
