//! Loops and branches around random statements, carrying random values.

use super::{INPUTS, Maker, Val};
use girih_compiler::num::DType;

impl Maker {
    /// Runs `body` in a scope of its own: what it defines is gone afterwards.
    pub(super) fn scope(&mut self, body: impl FnOnce(&mut Maker)) {
        let keep = self.pool.len();
        self.depth += 1;
        self.nested += 1;
        body(self);
        self.nested -= 1;
        self.depth -= 1;
        self.pool.truncate(keep);
    }

    pub(super) fn carried(&mut self) -> Vec<Val> {
        (0..self.rng.range(1, 3)).map(|_| Val { small: false, ..self.any() }).collect()
    }

    /// For each value, one of the same type that is visible now.
    pub(super) fn next_values(&mut self, carried: &[Val]) -> Vec<Val> {
        carried
            .iter()
            .map(|c| {
                let (shape, dtype) = (c.shape.clone(), c.dtype);
                let recent = self.pool.iter().rev().find(|v| v.shape == shape && v.dtype == dtype).cloned();
                let random = self.find(|v| v.shape == shape && v.dtype == dtype);
                if self.rng.chance(60) { recent } else { random }.unwrap_or_else(|| c.clone())
            })
            .collect()
    }

    pub(super) fn names(vals: &[Val]) -> String {
        vals.iter().map(|v| v.name.clone()).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn types(vals: &[Val]) -> String {
        vals.iter().map(Val::ty).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn for_loop(&mut self) {
        let carried = self.carried();
        let trips = self.rng.range(0, 4);
        let bound = self.hidden(&[], DType::I32, format!("constant <i32: {trips}> : tile<i32>"));
        let results: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let args: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let iv = self.fresh();
        let inits: Vec<String> = args.iter().zip(&carried).map(|(a, c)| format!("{} = {}", a.name, c.name)).collect();
        self.line(format!(
            "{} = for {iv} in (%i0 to {}, step %i1) : tile<i32> iter_values({}) -> ({}) {{",
            Self::names(&results),
            bound.name,
            inits.join(", "),
            Self::types(&carried)
        ));
        self.scope(|m| {
            m.pool.extend(args.iter().cloned());
            m.pool.push(Val { name: iv.clone(), shape: vec![], dtype: DType::I32, small: false });
            if m.rng.chance(50) {
                let (dtype, shape) = (*m.rng.pick(INPUTS), m.shape());
                m.view_input(dtype, &shape, &iv, trips.max(1) as u64);
            }
            for _ in 0..m.rng.range(1, 6) {
                m.step();
            }
            if m.rng.chance(20) {
                let cond = m.hidden(&[], DType::I1, format!("cmpi equal {iv}, %i1, signed : tile<i32> -> tile<i1>"));
                let early = m.next_values(&args);
                m.line(format!("if {} {{", cond.name));
                m.line(format!("  continue {} : {}", Self::names(&early), Self::types(&early)));
                m.line("}".into());
            }
            let next = m.next_values(&args);
            m.line(format!("continue {} : {}", Self::names(&next), Self::types(&next)));
        });
        self.line("}".into());
        self.pool.extend(results);
    }

    pub(super) fn if_else(&mut self) {
        let results: Vec<Val> = self.carried().into_iter().map(|c| Val { name: self.fresh(), ..c }).collect();
        let pred = *self.rng.pick(&["equal", "less_than"]);
        let cond = self.hidden(&[], DType::I1, format!("cmpi {pred} %lin, %i1, signed : tile<i32> -> tile<i1>"));
        self.line(format!("{} = if {} -> ({}) {{", Self::names(&results), cond.name, Self::types(&results)));
        for arm in 0..2 {
            self.scope(|m| {
                for _ in 0..m.rng.range(0, 4) {
                    m.step();
                }
                let fallback: Vec<Val> = results
                    .iter()
                    .map(|r| {
                        m.find(|v| v.shape == r.shape && v.dtype == r.dtype)
                            .unwrap_or_else(|| m.constant(&r.shape, r.dtype))
                    })
                    .collect();
                m.line(format!("yield {} : {}", Self::names(&fallback), Self::types(&fallback)));
            });
            self.line(if arm == 0 { "} else {".into() } else { "}".into() });
        }
        self.pool.extend(results);
    }

    /// `loop` with a counter and a break.
    pub(super) fn counted_loop(&mut self) {
        let carried = self.carried();
        let results: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let args: Vec<Val> = carried.iter().map(|c| Val { name: self.fresh(), ..c.clone() }).collect();
        let counter = self.fresh();
        let trips = self.rng.range(0, 3);
        let bound = self.hidden(&[], DType::I32, format!("constant <i32: {trips}> : tile<i32>"));
        let inits: Vec<String> = args.iter().zip(&carried).map(|(a, c)| format!("{} = {}", a.name, c.name)).collect();
        let types = Self::types(&carried);
        self.line(format!(
            "{} = loop iter_values({counter} = %i0, {}) : tile<i32>, {types} -> {types} {{",
            Self::names(&results),
            inits.join(", ")
        ));
        self.scope(|m| {
            m.pool.extend(args.iter().cloned());
            let cond = m.hidden(
                &[],
                DType::I1,
                format!("cmpi greater_than_or_equal {counter}, {}, signed : tile<i32> -> tile<i1>", bound.name),
            );
            m.line(format!("if {} {{", cond.name));
            m.line(format!("  break {} : {types}", Self::names(&args)));
            m.line("}".into());
            for _ in 0..m.rng.range(1, 4) {
                m.step();
            }
            let more = m.hidden(&[], DType::I32, format!("addi {counter}, %i1 : tile<i32>"));
            let next = m.next_values(&args);
            m.line(format!("continue {}, {} : tile<i32>, {types}", more.name, Self::names(&next)));
        });
        self.line("}".into());
        self.pool.extend(results);
    }
}
