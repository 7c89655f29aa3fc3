//! Values are used where they are visible: operations and operands of legal programs are moved, and what a walk of the
//! regions says of each place is compared with what the verifier says.

use std::collections::BTreeSet;

use super::mutate::PROGRAMS;
use crate::base::Code;
use crate::base::id::Id;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::parse::parse;
use crate::cuda_tile::verify::verify;

/// Every operation of the function with the values that are visible at it, in the order of the text.
fn places(f: &Func) -> Vec<(OpId, BTreeSet<ValueId>)> {
    fn walk(f: &Func, region: RegionId, outer: &BTreeSet<ValueId>, out: &mut Vec<(OpId, BTreeSet<ValueId>)>) {
        let mut visible = outer.clone();
        visible.extend(&f.regions[region].args);
        for &id in &f.regions[region].ops {
            out.push((id, visible.clone()));
            for &inner in &f.ops[id].regions {
                walk(f, inner, &visible, out);
            }
            visible.extend(&f.ops[id].results);
        }
    }
    let mut out = vec![];
    walk(f, Func::BODY, &BTreeSet::new(), &mut out);
    out
}

/// Where the verifier complains of a value that is not visible.
fn complaints(module: &Module) -> Vec<u32> {
    let found = verify(module);
    found.iter().filter(|d| d.code == Code::UndefinedValue).filter_map(|d| d.span.map(|s| s.start)).collect()
}

/// Every operand of every operation, replaced by every value of the same type.
#[test]
fn an_operand_must_be_visible_at_its_operation() {
    let (mut hidden, mut fine) = (0, 0);
    for text in PROGRAMS {
        let module = parse(&format!("cuda_tile.module @m {{ {text} }}")).module.expect("a program");
        assert_eq!(complaints(&module), [0u32; 0]);
        let f = &module.funcs[0];
        for (op, visible) in places(f) {
            for at in 0..f.ops[op].operands.len() {
                let ty = f.ty(f.ops[op].operands[at]);
                for v in f.values.iter().filter(|(_, value)| value.ty == *ty).map(|(v, _)| v) {
                    let mut moved = module.clone();
                    moved.funcs[0].ops[op].operands[at] = v;
                    let want = if visible.contains(&v) { vec![] } else { vec![f.ops[op].span.start] };
                    assert_eq!(complaints(&moved), want, "{:?} takes {:?}", f.ops[op].opcode, f.values[v].name);
                    *(if want.is_empty() { &mut fine } else { &mut hidden }) += 1;
                }
            }
        }
    }
    assert!(hidden > 100 && fine > 100, "{hidden} hidden, {fine} fine");
}

/// Every two neighbours of a region, exchanged.
#[test]
fn an_operation_must_stand_behind_what_it_uses() {
    let (mut refused, mut fine) = (0, 0);
    for text in PROGRAMS {
        let module = parse(&format!("cuda_tile.module @m {{ {text} }}")).module.expect("a program");
        let f = &module.funcs[0];
        for (r, region) in f.regions.iter() {
            for at in 1..region.ops.len() {
                let mut moved = module.clone();
                moved.funcs[0].regions[r].ops.swap(at - 1, at);
                let of_moved = places(&moved.funcs[0]);
                let wrong = |(op, visible): &(OpId, BTreeSet<ValueId>)| {
                    f.ops[*op].operands.iter().any(|v| !visible.contains(v)).then_some(f.ops[*op].span.start)
                };
                let want: BTreeSet<u32> = of_moved.iter().filter_map(wrong).collect();
                assert_eq!(complaints(&moved).into_iter().collect::<BTreeSet<_>>(), want);
                *(if want.is_empty() { &mut fine } else { &mut refused }) += 1;
            }
        }
    }
    assert!(refused > 20 && fine > 10, "{refused} refused, {fine} fine");
}

#[test]
fn a_value_has_one_definition_in_one_region() {
    let module = parse(&format!("cuda_tile.module @m {{ {} }}", PROGRAMS[1])).module.expect("a program");
    let mut twice = module.clone();
    let f = &mut twice.funcs[0];
    let (first, second) = (OpId::from_index(0), OpId::from_index(1));
    f.ops[second].results = f.ops[first].results.clone();
    assert!(verify(&twice).iter().any(|d| d.code == Code::Redefinition), "{:#?}", verify(&twice));
    let mut unknown = module.clone();
    unknown.funcs[0].ops[second].operands[0] = ValueId::from_index(100_000);
    assert_eq!(complaints(&unknown), [unknown.funcs[0].ops[second].span.start]);
}
