//! Which memory an address may lead to.
//!
//! In: a kernel of Loop IR or Tile IR. Out: of every address, the values that it may have been made of: pointer
//! parameters, memory that the kernel takes for its block, globals. An address that was a number, or lay in memory, may be
//! of anything.
//!
//! ```text
//! q: ptr f32 = select(c, p, x)        q: p or x
//! r: ptr f32 = q + 4:i64              r: p or x
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::ir::*;
use super::walk;

/// The base of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A parameter, or what an allocation or a global gives.
    Of(ValId),
    Unknown,
}

/// The origins of every address, found by following it through operations and buffers until nothing is new.
#[derive(Default)]
pub struct Origins {
    vals: BTreeMap<ValId, BTreeSet<Origin>>,
    bufs: BTreeMap<BufId, BTreeSet<Origin>>,
}

impl Origins {
    pub fn of(kernel: &Kernel) -> Origins {
        let is_address = |v: ValId| kernel.vals.get(v).is_some_and(|val| matches!(val.ty, Ty::Ptr(_)));
        let mut found = Origins::default();
        for param in kernel.params.iter().filter(|p| is_address(p.val)) {
            found.vals.insert(param.val, BTreeSet::from([Origin::Of(param.val)]));
        }
        walk::visit(&kernel.body, &mut |s| {
            if let Stmt::Alloca { dst, .. } | Stmt::GlobalAddr { dst, .. } = s {
                found.vals.insert(*dst, BTreeSet::from([Origin::Of(*dst)]));
            }
        });
        loop {
            let mut grew = false;
            walk::visit(&kernel.body, &mut |s| match s {
                Stmt::Let { dst, args, .. } if is_address(*dst) => {
                    let addresses = args.iter().filter_map(|a| match a {
                        Opnd::Val(v) if is_address(*v) => Some(*v),
                        _ => None,
                    });
                    let mut from: Vec<_> = addresses.map(|v| found.val(v)).collect();
                    if from.is_empty() {
                        // A number became an address.
                        from.push(BTreeSet::from([Origin::Unknown]));
                    }
                    grew |= add(found.vals.entry(*dst).or_default(), from.into_iter().flatten());
                }
                Stmt::Read { dst, buf, .. } if is_address(*dst) => {
                    let from = found.bufs.get(buf).cloned().unwrap_or_default();
                    grew |= add(found.vals.entry(*dst).or_default(), from);
                }
                Stmt::Write { buf, value: Opnd::Val(v), .. } if is_address(*v) => {
                    let from = found.val(*v);
                    grew |= add(found.bufs.entry(*buf).or_default(), from);
                }
                _ => {}
            });
            if !grew {
                return found;
            }
        }
    }

    /// The origins of an address. A value without a definition above, such as one that was loaded, may be of anything.
    pub fn val(&self, v: ValId) -> BTreeSet<Origin> {
        self.vals.get(&v).cloned().unwrap_or_else(|| BTreeSet::from([Origin::Unknown]))
    }

    /// The origins of the addresses in a buffer.
    pub fn buf(&self, buf: BufId) -> BTreeSet<Origin> {
        self.bufs.get(&buf).cloned().unwrap_or_default()
    }

    /// The only origin of an address, if it has one.
    pub fn only(&self, v: ValId) -> Option<ValId> {
        let from = self.vals.get(&v)?;
        match from.first() {
            Some(Origin::Of(v)) if from.len() == 1 => Some(*v),
            _ => None,
        }
    }
}

fn add(to: &mut BTreeSet<Origin>, from: impl IntoIterator<Item = Origin>) -> bool {
    let before = to.len();
    to.extend(from);
    to.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::parse::parse;

    #[test]
    fn an_address_is_of_what_it_was_made_of() {
        let text = "loop kernel k(x: ptr f32, y: ptr f32, t: ptr f32, c: i1, n: i64):
  p: ptr f32 = alloca 64 align 64
  local b: ptr f32
  b = x
  for i in 0..4: serial
    moved: ptr f32 = b
    next: ptr f32 = moved + 1:i64
    b = next
  either: ptr f32 = select(c, p, y)
  behind: ptr f32 = either + n
  number: i64 = ptrtoint(x)
  made: ptr f32 = inttoptr.f32(number)
";
        let (kernel, _) = parse(text).unwrap();
        let origins = Origins::of(&kernel);
        let named = |name: &str| kernel.vals.iter().find(|(_, v)| v.name == name).map(|(v, _)| v).unwrap();
        let of = |names: &[&str]| names.iter().map(|n| Origin::Of(named(n))).collect::<BTreeSet<_>>();
        assert_eq!(origins.val(named("next")), of(&["x"]));
        assert_eq!(origins.only(named("next")), Some(named("x")));
        assert_eq!(origins.val(named("behind")), of(&["p", "y"]));
        assert_eq!(origins.only(named("behind")), None);
        assert_eq!(origins.val(named("made")), BTreeSet::from([Origin::Unknown]));
    }
}
