//! Statements of every stage belong to the operations that they were made for.

use girih_compiler::base::provenance::SourceId;
use girih_compiler::cuda_tile::parse::parse;
use girih_compiler::kernel::ir::*;
use girih_compiler::kernel::provenance::{of_statements, stored};
use girih_compiler::loops::provenance as loops;
use girih_compiler::pipeline::{self, Options, Silent};
use girih_compiler::tile::target::Target;

const ADD: &str = "cuda_tile.module @m {
  entry @add(%a: tile<ptr<f32>>, %c: tile<ptr<f32>>) {
    %i = iota : tile<128xi32>
    %as = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %ab = broadcast %as : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %ap = offset %ab, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %x, %t = load_ptr_tko weak %ap : tile<128xptr<f32>> -> tile<128xf32>, token
    %y = mulf %x, %x : tile<128xf32>
    %cs = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %cb = broadcast %cs : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %cp = offset %cb, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %u = store_ptr_tko weak %cp, %y : tile<128xptr<f32>>, tile<128xf32> -> token
  }
}
";

/// A statement that is written out at a stage was made for the operation that starts there.
#[test]
fn loads_products_and_stores_belong_to_their_operations_at_every_stage() {
    let module = parse(ADD).module.unwrap();
    for target in ["x86-64-v4", "sm_80"] {
        let target = Target::named(target).unwrap_or_default();
        let options = Options { target, ..Options::default() };
        let lowered = pipeline::lower(&module, "add", &options, &mut Silent).unwrap();
        let of = |s: &[SourceId]| -> Vec<&str> {
            s.iter().map(|s| ADD[s.0 as usize..].split_whitespace().next().unwrap_or("")).collect()
        };
        for (kernel, stage) in [(&lowered.loops, "loop"), (&lowered.tile, "tile")] {
            for (stmt, sources) in loops::resolve(kernel) {
                let want = match stmt {
                    girih_compiler::loops::ir::Stmt::Load { .. } => "load_ptr_tko",
                    girih_compiler::loops::ir::Stmt::Store { .. } => "store_ptr_tko",
                    girih_compiler::loops::ir::Stmt::Let { op: girih_compiler::num::ScalarOp::MulF { .. }, .. } => {
                        "mulf"
                    }
                    _ => continue,
                };
                assert_eq!(of(&sources), [want], "{stage}: {stmt:?}");
            }
        }
        let mut stmts = vec![];
        statements(&lowered.kernel.body, &mut |stmt| stmts.push(stmt));
        let all = of_statements(&lowered.kernel);
        assert_eq!(all.len(), stmts.len());
        let mut seen = [0; 3];
        for (stmt, sources) in stmts.iter().zip(&all) {
            let (at, want) = match stmt {
                Stmt::Load { place: Address::Mem { .. }, .. } => (0, "load_ptr_tko"),
                Stmt::Store { place: Address::Mem { .. }, .. } => (1, "store_ptr_tko"),
                Stmt::Let { op: girih_compiler::num::ScalarOp::MulF { .. }, .. } => (2, "mulf"),
                _ => continue,
            };
            seen[at] += 1;
            assert_eq!(of(sources), [want], "{stmt:?}");
        }
        assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
    }
}
/// Stores of constants to one array, equal ones among them, belong each to its own operation.
#[test]
fn stores_of_constants_belong_to_their_operations() {
    let head = "cuda_tile.module @m {
  entry @fill(%c: tile<ptr<f32>>) {
    %z = constant <f32: 0.0> : tile<64xf32>
    %o = constant <f32: 1.0> : tile<64xf32>
    %i = iota : tile<64xi32>
    %b = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %p = broadcast %b : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %p0 = offset %p, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %w = constant <i32: 64> : tile<64xi32>
    %p1 = offset %p0, %w : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
";
    // Every three stores of two values to two places.
    for n in 0..64 {
        let mut text = head.to_string();
        let mut want = vec![];
        for at in 0..3 {
            let (place, value) = (n >> (2 * at) & 1, if n >> (2 * at + 1) & 1 == 0 { "z" } else { "o" });
            text += "    ";
            want.push(SourceId(text.len() as u32 + 6));
            let token = if at == 0 { String::new() } else { format!(" token=%t{}", at - 1) };
            text += &format!("%t{at} = store_ptr_tko weak %p{place}, %{value}{token} : ");
            text += "tile<64xptr<f32>>, tile<64xf32> -> token\n";
        }
        text += "    return\n  }\n}\n";
        let module = parse(&text).module.unwrap();
        for target in ["x86-64-v4", "sm_80"] {
            let options = Options { target: Target::named(target).unwrap_or_default(), ..Options::default() };
            let lowered = pipeline::lower(&module, "fill", &options, &mut Silent).unwrap();
            let mut stmts = vec![];
            statements(&lowered.kernel.body, &mut |stmt| stmts.push(stmt));
            let all = of_statements(&lowered.kernel);
            let stores = stmts.iter().zip(&all).filter(|(stmt, _)| stored(stmt).is_some());
            let mut found: Vec<SourceId> = stores.flat_map(|(_, sources)| sources.clone()).collect();
            found.dedup();
            assert_eq!(found, want, "{target}\n{text}");
        }
    }
}
