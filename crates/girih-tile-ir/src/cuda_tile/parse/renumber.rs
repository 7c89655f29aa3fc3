//! Canonical numbering.

use crate::base::IdMap;
use crate::cuda_tile::ir::*;

/// The same function with values, operations and regions numbered in the order of the text: an operation, its results,
/// then each region with its arguments and its operations. Items that no region reaches are gone.
pub fn renumber(f: &Func) -> Func {
    let mut out = Func {
        kind: f.kind,
        name: f.name.clone(),
        results: f.results.clone(),
        hints: f.hints.clone(),
        values: IdMap::new(),
        ops: IdMap::new(),
        regions: IdMap::new(),
        span: f.span,
        loc: f.loc.clone(),
    };
    let mut values = vec![None; f.values.len()];
    region(f, Func::BODY, &mut out, &mut values);
    out
}

fn value(f: &Func, old: ValueId, def: ValueDef, out: &mut Func, values: &mut [Option<ValueId>]) -> ValueId {
    let v = &f.values[old];
    let new = out.values.push(Value { ty: v.ty.clone(), def, name: v.name.clone(), span: v.span });
    values[old.0 as usize] = Some(new);
    new
}

fn region(f: &Func, old: RegionId, out: &mut Func, values: &mut [Option<ValueId>]) -> RegionId {
    let id = out.regions.push(Region::default());
    for (index, &arg) in f.regions[old].args.iter().enumerate() {
        let v = value(f, arg, ValueDef::Arg { region: id, index: index as u32 }, out, values);
        out.regions[id].args.push(v);
    }
    for &old_op in &f.regions[old].ops {
        let op = &f.ops[old_op];
        // A use comes after its definition, so its number is known.
        let operands = op.operands.iter().filter_map(|v| values[v.0 as usize]).collect();
        let new = Op { operands, results: vec![], regions: vec![], ..op.clone() };
        let op_id = out.ops.push(new);
        out.regions[id].ops.push(op_id);
        for (index, &r) in op.results.iter().enumerate() {
            let v = value(f, r, ValueDef::Result { op: op_id, index: index as u32 }, out, values);
            out.ops[op_id].results.push(v);
        }
        for &r in &op.regions {
            let r = region(f, r, out, values);
            out.ops[op_id].regions.push(r);
        }
    }
    id
}
