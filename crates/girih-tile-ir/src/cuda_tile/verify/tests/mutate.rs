//! Modules broken at random: the verifier never panics, and what it lets through the evaluator never panics on.

use crate::base::id::Id;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::cuda_tile::eval::{Options, Silent, run_with};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::parse::parse;
use crate::cuda_tile::verify::verify;
use crate::num::DType;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn mutate(f: &mut Func, rng: &mut Rng) {
    let (values, ops) = (f.values.len(), f.ops.len());
    let value = ValueId::from_index(rng.below(values));
    let op = OpId::from_index(rng.below(ops));
    let other = OpId::from_index(rng.below(ops));
    match rng.below(10) {
        0 => f.values[value].ty = f.values[ValueId::from_index(rng.below(values))].ty.clone(),
        1 => {
            if let Type::Tile(t) = &mut f.values[value].ty {
                let dims = [0, 1, 2, 3, 8, 64];
                match rng.below(3) {
                    0 => t.shape.push(dims[rng.below(6)]),
                    1 => drop(t.shape.pop()),
                    _ => t.shape.iter_mut().for_each(|n| *n = dims[rng.below(6)]),
                }
            }
        }
        2 => {
            if let Type::Tile(t) = &mut f.values[value].ty {
                let d = DType::of_tile_ir().nth(rng.below(16)).unwrap();
                t.elem = if rng.below(4) == 0 { Elem::Ptr(d) } else { Elem::Num(d) };
            }
        }
        3 => {
            let at = rng.below(f.ops[op].operands.len());
            if let Some(slot) = f.ops[op].operands.get_mut(at) {
                *slot = value;
            }
        }
        4 => drop(f.ops[op].operands.pop()),
        5 => drop(f.ops[op].attrs.pop()),
        6 => f.ops[op].attrs = f.ops[other].attrs.clone(),
        7 => f.ops[op].opcode = f.ops[other].opcode,
        8 => {
            if let Type::View(v) = &mut f.values[value].ty {
                match rng.below(4) {
                    0 => v.tile.iter_mut().for_each(|n| *n = [-1, 0, 2, 16][rng.below(4)]),
                    1 => drop(v.dim_map.pop()),
                    2 => v.kind = ViewKind::GatherScatter { sparse_dim: rng.below(3) as u32 },
                    _ => v.padding = Some(Padding::Nan),
                }
            }
        }
        _ => {
            let region = RegionId::from_index(rng.below(f.regions.len()));
            match rng.below(3) {
                0 => drop(f.regions[region].ops.pop()),
                1 => drop(f.regions[region].args.pop()),
                _ => {
                    let (a, b) = (rng.below(f.regions[region].ops.len()), rng.below(f.regions[region].ops.len()));
                    if a < f.regions[region].ops.len() {
                        f.regions[region].ops.swap(a, b);
                    }
                }
            }
        }
    }
}

pub(super) const PROGRAMS: &[&str] = &[
    "global @g <i32: [7, 8]> : tile<2xi32>
    entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
      %z = constant <i32: 0> : tile<i32>
      %s = constant <i32: 1> : tile<i32>
      %tv = make_tensor_view %p, shape = [%n, 16], strides = [16, 1] : tile<i32> -> tensor_view<?x16xf32, strides=[16,1]>
      %v = make_partition_view %tv : partition_view<tile=(4x8), padding_value = zero, tensor_view<?x16xf32, strides=[16,1]>>
      %a, %b = get_index_space_shape %v : partition_view<tile=(4x8), padding_value = zero, tensor_view<?x16xf32, strides=[16,1]>> -> tile<i32>
      %acc = constant <f32: 0.0> : tile<4x8xf32>
      %r = for %i in (%z to %a, step %s) : tile<i32> iter_values(%c = %acc) -> (tile<4x8xf32>) {
        %x, %t = load_view_tko weak %v[%i, %z] : partition_view<tile=(4x8), padding_value = zero, tensor_view<?x16xf32, strides=[16,1]>>, tile<i32> -> tile<4x8xf32>, token
        %y = addf %x, %c : tile<4x8xf32>
        continue %y : tile<4x8xf32>
      }
      %q = permute %r [1, 0] : tile<4x8xf32> -> tile<8x4xf32>
      %h = ftof %q : tile<8x4xf32> -> tile<8x4xf16>
      %g = ftof %r : tile<4x8xf32> -> tile<4x8xf16>
      %o = constant <f32: 0.0> : tile<4x4xf32>
      %m = mmaf %g, %h, %o : tile<4x8xf16>, tile<8x4xf16>, tile<4x4xf32>
      %k = reduce %m dim=1 identities=[0.0 : f32] : tile<4x4xf32> -> tile<4xf32> (%e: tile<f32>, %d: tile<f32>) { %w = addf %e, %d : tile<f32>
        yield %w : tile<f32> }
      %u = store_view_tko weak %r, %v[%z, %z] : tile<4x8xf32>, partition_view<tile=(4x8), padding_value = zero, tensor_view<?x16xf32, strides=[16,1]>>, tile<i32> -> token
      print_tko \"%f\", %k : tile<4xf32> -> token
      return
    }",
    "entry @k(%p: tile<ptr<i32>>, %n: tile<i32>) {
      %o = iota : tile<8xi32>
      %p1 = reshape %p : tile<ptr<i32>> -> tile<1xptr<i32>>
      %pb = broadcast %p1 : tile<1xptr<i32>> -> tile<8xptr<i32>>
      %ps = offset %pb, %o : tile<8xptr<i32>>, tile<8xi32> -> tile<8xptr<i32>>
      %nb = reshape %n : tile<i32> -> tile<1xi32>
      %nn = broadcast %nb : tile<1xi32> -> tile<8xi32>
      %m = cmpi less_than %o, %nn, signed : tile<8xi32> -> tile<8xi1>
      %v, %t = load_ptr_tko weak %ps, %m, %o : tile<8xptr<i32>>, tile<8xi1>, tile<8xi32> -> tile<8xi32>, token
      %c = scan %v dim=0 reverse=true identities=[0 : i32] : tile<8xi32> -> tile<8xi32> (%e: tile<i32>, %a: tile<i32>) { %w = addi %e, %a : tile<i32>
        yield %w : tile<i32> }
      %d = divi %c, %v signed : tile<8xi32>
      %f = select %m, %d, %c : tile<8xi1>, tile<8xi32>
      %b = trunci %n : tile<i32> -> tile<i1>
      %x = if %b -> (tile<i32>) { yield %n : tile<i32> } else { %y = muli %n, %n : tile<i32>
        yield %y : tile<i32> }
      %l = loop iter_values(%q = %x) : tile<i32> -> tile<i32> {
        %h = shri %q, %x signed : tile<i32>
        %z = cmpi equal %h, %q, signed : tile<i32> -> tile<i1>
        if %z { break %h : tile<i32> }
        continue %h : tile<i32>
      }
      %g = cat %f, %c dim = 0 : tile<8xi32>, tile<8xi32> -> tile<16xi32>
      %j = extract %g[%l] : tile<16xi32> -> tile<4xi32>
      %r, %t1 = atomic_rmw_tko relaxed device %ps, add, %v, %m token=%t : tile<8xptr<i32>>, tile<8xi32>, tile<8xi1> -> tile<8xi32>, token
      %s, %t2 = atomic_cas_tko acq_rel device %ps, %v, %c : tile<8xptr<i32>>, tile<8xi32> -> tile<8xi32>, token
      %i = assume bounded<0, ?>, %o : tile<8xi32>
      print_tko \"%d %d\", %j, %i : tile<4xi32>, tile<8xi32> -> token
      return
    }",
];

#[test]
fn broken_modules_never_panic() {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let (mut refused, mut ran) = (0, 0);
    for text in PROGRAMS {
        let parsed = parse(&format!("cuda_tile.module @m {{ {text} }}"));
        let Some(module) = parsed.module else { panic!("{:#?}", parsed.diagnostics) };
        assert_eq!(verify(&module).iter().filter(|d| d.is_error()).count(), 0, "{:#?}", verify(&module));
        for _ in 0..4000 {
            let mut broken = module.clone();
            for _ in 0..=rng.below(2) {
                mutate(&mut broken.funcs[0], &mut rng);
            }
            if verify(&broken).iter().any(|d| d.is_error()) {
                refused += 1;
                continue;
            }
            let mut memory = VecMemory::new();
            let p = memory.add("p", vec![1; 1024]);
            let args = vec![p, 5, 0, 0].into_iter().take(broken.funcs[0].params().len()).collect();
            let options = Options { fuel: Some(100_000), ..Options::default() };
            let launch = Launch::new([1, 1, 1], args);
            let _ = run_with(&broken, "k", &launch, &mut memory, &mut Silent, &options);
            ran += 1;
        }
    }
    assert!(refused > 1000 && ran > 500, "{refused} refused, {ran} ran");
}
