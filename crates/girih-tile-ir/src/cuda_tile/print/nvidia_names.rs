//! The value names of NVIDIA's disassembler.
//!
//! A region's values are all named before those of the regions inside it. A name that is taken gets `_` and the next
//! number of a counter that all names share; values without a name are numbered. Both counters continue in an inner
//! region and return to their old values after it.

use super::names::Names;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::ops;
use crate::num::DType;
use rustc_hash::FxHashSet;

#[derive(Clone, Copy)]
struct Counters {
    value: u32,
    arg: u32,
    conflict: u32,
}

struct Namer<'a> {
    f: &'a Func,
    taken: FxHashSet<String>,
    names: Names,
}

pub(super) fn nvidia_names(f: &Func) -> Names {
    let names = Names { uses: vec![String::new(); f.values.len()], results: vec![vec![]; f.ops.len()] };
    let mut n = Namer { f, taken: FxHashSet::default(), names };
    n.region(Func::BODY, None, Counters { value: 0, arg: 0, conflict: 0 });
    n.names
}

impl Namer<'_> {
    fn region(&mut self, r: RegionId, owner: Option<&Op>, mut c: Counters) {
        let f = self.f;
        let mut mine = vec![];
        for (i, &arg) in f.regions[r].args.iter().enumerate() {
            let wanted = owner.and_then(|op| arg_name(op, i)).unwrap_or_else(|| {
                c.arg += 1;
                format!("arg{}", c.arg - 1)
            });
            let name = self.unique(wanted, &mut c, &mut mine);
            self.names.uses[arg.0 as usize] = name;
        }
        for &id in &f.regions[r].ops {
            self.results(id, &mut c, &mut mine);
        }
        for &id in &f.regions[r].ops {
            let op = &f.ops[id];
            for &inner in &op.regions {
                self.region(inner, Some(op), c);
            }
        }
        for name in mine {
            self.taken.remove(&name);
        }
    }

    fn unique(&mut self, wanted: String, c: &mut Counters, mine: &mut Vec<String>) -> String {
        let mut name = wanted.clone();
        while self.taken.contains(&name) {
            name = format!("{wanted}_{}", c.conflict);
            c.conflict += 1;
        }
        self.taken.insert(name.clone());
        mine.push(name.clone());
        name
    }

    fn results(&mut self, id: OpId, c: &mut Counters, mine: &mut Vec<String>) {
        let f = self.f;
        let op = &f.ops[id];
        let each = each_result_named(op.opcode);
        if op.results.is_empty() {
            return;
        }
        if let Some(names) = each {
            for (&v, name) in op.results.iter().zip(names) {
                let name = self.unique(name.clone(), c, mine);
                self.names.uses[v.0 as usize] = name.clone();
                self.names.results[id.0 as usize].push((name, 1));
            }
            return;
        }
        let name = match result_name(f, op) {
            Some(name) => self.unique(name, c, mine),
            None => {
                c.value += 1;
                (c.value - 1).to_string()
            }
        };
        let n = op.results.len();
        for (i, &v) in op.results.iter().enumerate() {
            self.names.uses[v.0 as usize] = if n == 1 { name.clone() } else { format!("{name}#{i}") };
        }
        self.names.results[id.0 as usize].push((name, n));
    }
}

/// For operations with several fixed results, the name of each result.
fn each_result_named(op: Opcode) -> Option<Vec<String>> {
    let results = &ops::info(op).results;
    let several = results.len() > 1;
    several.then(|| results.iter().map(|r| r.name.to_string()).collect())
}

fn result_name(f: &Func, op: &Op) -> Option<String> {
    Some(match op.opcode {
        Opcode::Constant => match op.attr(AttrKey::Value) {
            Some(Attr::Elements(e)) => constant_name(e),
            _ => return None,
        },
        Opcode::Reshape => "reshape".into(),
        Opcode::Broadcast => "bcast".into(),
        Opcode::MakeTensorView => "tview".into(),
        Opcode::MakePartitionView => "pview".into(),
        Opcode::MakeStridedView => "sview".into(),
        Opcode::MakeGatherScatterView => "gsview".into(),
        Opcode::For => "for".into(),
        Opcode::Reduce => "reduce".into(),
        Opcode::Assume => assume_name(f, op),
        _ => return None,
    })
}

/// The longest chain of assumptions about assumptions whose names are still joined.
const LONGEST_CHAIN: usize = 100;

/// `assume`, and the name of the assumed value without the number that makes it unique. Operations with regions name at
/// most their first result; their other results have an empty name, which shows as a `_` of its own.
fn assume_name(f: &Func, op: &Op) -> String {
    let mut name = String::from("assume");
    let mut op = op;
    for _ in 0..LONGEST_CHAIN {
        let Some(v) = op.operand(0) else { return name };
        let ValueDef::Result { op: def, index } = f.values[v].def else { return name };
        op = &f.ops[def];
        if op.opcode == Opcode::Assume {
            name += "_assume";
            continue;
        }
        let each = each_result_named(op.opcode);
        let given = match each {
            Some(names) => names.get(index as usize).cloned(),
            None => result_name(f, op).filter(|_| index == 0),
        };
        return match given {
            Some(given) => name + "_" + &given,
            None if ops::info(op.opcode).regions.1 > 0 => name + "_",
            None => name,
        };
    }
    name
}

fn constant_name(e: &Elements) -> String {
    let d = e.dtype;
    if !e.is_splat() {
        return format!("cst_{d}");
    }
    let bits = e.get(0);
    if d == DType::I1 {
        return if bits == 1 { "true" } else { "false" }.into();
    }
    if d.is_int() {
        let unused = 64 - d.bits();
        return format!("cst_{}_{d}", ((bits << unused) as i64) >> unused);
    }
    let x = crate::num::convert::to_f64(d, bits);
    if x.is_nan() {
        return format!("cst_NaN_{d}");
    }
    // Integers that fit 64 bits without a sign.
    let whole = x.fract() == 0.0 && x.is_sign_positive() && x < 18_446_744_073_709_551_616.0;
    if whole { format!("cst_{}_{d}", x as u64) } else { format!("cst_{d}") }
}

/// The names of region arguments.
fn arg_name(op: &Op, i: usize) -> Option<String> {
    match op.opcode {
        Opcode::For if i == 0 => Some("loopIdx".into()),
        Opcode::For => Some(format!("iterArg{}", i - 1)),
        Opcode::Reduce => {
            let side = if i.is_multiple_of(2) { "reduce_lhs" } else { "reduce_rhs" };
            Some(if op.operands.len() == 1 { side.into() } else { format!("{side}{}", i / 2) })
        }
        _ => None,
    }
}
