//! The names of values in our own style: those of the source, made unique within their scope.

use crate::cuda_tile::ir::*;
use rustc_hash::FxHashMap;

/// The text of a function's values.
pub(super) struct Names {
    /// The text of a use of each value, without `%`.
    pub uses: Vec<String>,
    /// The names left of `=` for each operation, each with the number of its values.
    pub results: Vec<Vec<(String, usize)>>,
}

impl Names {
    pub fn new(f: &Func) -> Names {
        let mut used = vec![false; f.values.len()];
        for op in f.ops.values() {
            op.operands.iter().for_each(|v| used[v.0 as usize] = true);
        }
        let mut n = Namer {
            f,
            used,
            taken: FxHashMap::default(),
            scope: vec![],
            next: 0,
            names: Names { uses: vec![String::new(); f.values.len()], results: vec![vec![]; f.ops.len()] },
        };
        n.region(Func::BODY);
        n.names
    }
}

struct Namer<'a> {
    f: &'a Func,
    used: Vec<bool>,
    /// Names in scope.
    taken: FxHashMap<String, ()>,
    scope: Vec<String>,
    next: u32,
    names: Names,
}

/// The name with only characters that the text allows.
fn plain(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '-');
    let mut out: String = name.chars().map(|c| if keep(c) { c } else { '_' }).collect();
    let number = out.bytes().all(|b| b.is_ascii_digit());
    if out.is_empty() || (!number && out.starts_with(|c: char| c.is_ascii_digit() || c == '-')) {
        out.insert(0, '_');
    }
    out
}

impl Namer<'_> {
    fn unique(&mut self, wanted: Option<&str>) -> String {
        let mut name = match wanted {
            Some(w) => plain(w),
            None => self.fresh(),
        };
        if self.taken.contains_key(&name) {
            let base = name.clone();
            let number = base.bytes().all(|b| b.is_ascii_digit());
            for i in 0.. {
                name = if number { self.fresh() } else { format!("{base}_{i}") };
                if !self.taken.contains_key(&name) {
                    break;
                }
            }
        }
        self.taken.insert(name.clone(), ());
        self.scope.push(name.clone());
        name
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        (self.next - 1).to_string()
    }

    fn region(&mut self, r: RegionId) {
        let f = self.f;
        let outer = self.scope.len();
        for &arg in &f.regions[r].args {
            self.names.uses[arg.0 as usize] = self.unique(f.values[arg].name.as_deref());
        }
        for &id in &f.regions[r].ops {
            let op = &f.ops[id];
            for &r in &op.regions {
                self.region(r);
            }
            self.results(id, op);
        }
        for name in self.scope.drain(outer..) {
            self.taken.remove(&name);
        }
    }

    fn results(&mut self, id: OpId, op: &Op) {
        let name = |v: ValueId| self.f.values[v].name.as_deref();
        if op.results.iter().all(|&v| name(v).is_none() && !self.used[v.0 as usize]) {
            return;
        }
        let mut i = 0;
        while let Some(&v) = op.results.get(i) {
            let base = name(v).and_then(|n| n.strip_suffix("#0"));
            let member = |k: usize| {
                let r = op.results.get(i + k).and_then(|&r| name(r));
                base.is_some_and(|b| r.and_then(|n| n.strip_prefix(b)) == Some(&format!("#{k}")))
            };
            let count = (0..).take_while(|&k| member(k)).count();
            let text = self.unique(base.filter(|_| count > 1).or(name(v)));
            for k in 0..count.max(1) {
                let suffix = if count > 1 { format!("#{k}") } else { String::new() };
                self.names.uses[op.results[i + k].0 as usize] = format!("{text}{suffix}");
            }
            self.names.results[id.0 as usize].push((text, count.max(1)));
            i += count.max(1);
        }
    }
}
