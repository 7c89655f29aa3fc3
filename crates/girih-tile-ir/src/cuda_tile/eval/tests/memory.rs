//! Operations on memory: pointers, views, atomics, races, blocks that wait for each other.

use super::*;
use crate::base::Budget;

const ROW: &str = "%p1 = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
    %pb = broadcast %p1 : tile<1xptr<f32>> -> tile<8xptr<f32>>
    %o = iota : tile<8xi32>
    %ps = offset %pb, %o : tile<8xptr<f32>>, tile<8xi32> -> tile<8xptr<f32>>\n";

#[test]
fn masked_loads_and_stores() {
    let text = format!(
        "{ROW}%n = constant <i32: 5> : tile<8xi32>
        %m = cmpi less_than %o, %n, signed : tile<8xi32> -> tile<8xi1>
        %pad = constant <f32: -1.0> : tile<8xf32>
        %v, %t = load_ptr_tko weak %ps, %m, %pad : tile<8xptr<f32>>, tile<8xi1>, tile<8xf32> -> tile<8xf32>, token
        print_tko \"%g\", %v : tile<8xf32> -> token
        %d = addf %v, %v : tile<8xf32>
        %t2 = store_ptr_tko weak %ps, %d, %m token=%t : tile<8xptr<f32>>, tile<8xf32>, tile<8xi1> -> token"
    );
    let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&[1.0, 2.0, 3.0, 4.0, 5.0]))]);
    assert_eq!(out.printed, "[1, 2, 3, 4, 5, -1, -1, -1]");
    assert_eq!(as_f32s(&out.buffers[0]), [2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!(out.result.map(|r| r.warnings), Ok(vec![]));
}

#[test]
fn a_padding_may_stand_without_a_mask() {
    let text = format!(
        "{ROW}%pad = constant <f32: -1.0> : tile<8xf32>
        %v, %t = load_ptr_tko weak %ps, %pad : tile<8xptr<f32>>, tile<8xf32> -> tile<8xf32>, token
        print_tko \"%g\", %v : tile<8xf32> -> token"
    );
    let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&[3.0; 8]))]);
    assert_eq!(out.printed, "[3, 3, 3, 3, 3, 3, 3, 3]");
}

#[test]
fn an_access_outside_names_buffer_element_and_block() {
    let text = format!("{ROW}%v, %t = load_ptr_tko weak %ps : tile<8xptr<f32>> -> tile<8xf32>, token");
    let trap = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&[0.0; 5]))]).result.expect_err("trap");
    assert_eq!((trap.code, trap.element, trap.op.as_str()), (Code::OutOfBounds, Some(vec![5]), "load_ptr_tko"));
    assert!(trap.message.contains("buffer 0") && trap.message.contains("20 bytes"), "{}", trap.message);
}

#[test]
fn masked_elements_without_padding_are_undefined() {
    let text = format!(
        "{ROW}%m = constant <i1: [1, 1, 1, 1, 0, 0, 0, 0]> : tile<8xi1>
        %v, %t = load_ptr_tko weak %ps, %m : tile<8xptr<f32>>, tile<8xi1> -> tile<8xf32>, token
        %t2 = store_ptr_tko weak %ps, %v MASK token=%t : tile<8xptr<f32>>, tile<8xf32> TYPE -> token"
    );
    let buffer = || vec![Arg::Buffer(f32s(&[1.0; 8]))];
    let out = body("%p: tile<ptr<f32>>", &text.replace("MASK", ", %m").replace("TYPE", ", tile<8xi1>"), buffer());
    assert_eq!(out.result.err(), None);
    let trap =
        body("%p: tile<ptr<f32>>", &text.replace("MASK", "").replace("TYPE", ""), buffer()).result.expect_err("trap");
    assert_eq!((trap.code, trap.op.as_str(), trap.element), (Code::UndefinedUsed, "load_ptr_tko", Some(vec![4])));
}

/// Loads one tile of a 64x16 tensor whose element (i, j) is 16 i + j, and returns the index space and the tile.
fn view_of_64x16(view: &str, make: &str, index: &str, tile: &str) -> (String, String) {
    let tensor = "tensor_view<64x16xf32, strides=[16,1]>";
    let text = format!(
        "%tv = make_tensor_view %p, shape = [64, 16], strides = [16, 1] : {tensor}
        %v = {make} %tv : {view}
        %n, %m = get_index_space_shape %v : {view} -> tile<i32>
        print_tko \"%dx%d\\n\", %n, %m : tile<i32>, tile<i32> -> token
        %i = constant <i32: {}> : tile<i32>
        %j = constant <i32: {}> : tile<i32>
        %x, %t = load_view_tko weak %v[%i, %j] : {view}, tile<i32> -> {tile}, token
        print_tko \"%g\", %x : {tile} -> token",
        index.split(',').next().unwrap_or("0"),
        index.split(',').nth(1).unwrap_or("0"),
    );
    let all: Vec<f32> = (0..64 * 16).map(|i| i as f32).collect();
    let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&all))]);
    assert_eq!(out.result.err(), None);
    let (space, tile) = out.printed.split_once('\n').expect("two lines");
    (space.into(), tile.into())
}

#[test]
fn strided_views() {
    let view = "strided_view<tile=(4x2), traversal_strides=[4,3], padding_value = zero, tensor_view<64x16xf32, strides=[16,1]>>";
    let (space, tile) = view_of_64x16(view, "make_strided_view", "1,5", "tile<4x2xf32>");
    assert_eq!(space, "16x6");
    // rows 4..8, columns 15 and 16, the latter outside
    assert_eq!(tile, "[[79, 0], [95, 0], [111, 0], [127, 0]]");
    let view = "strided_view<tile=(4x2), traversal_strides=[4,3], padding_value = zero, tensor_view<64x16xf32, strides=[16,1]>, dim_map=[1, 0]>";
    let (space, tile) = view_of_64x16(view, "make_strided_view", "1,2", "tile<4x2xf32>");
    // tile dimension 0 runs along tensor dimension 1: ceil(16/4) by ceil(64/3)
    assert_eq!(space, "4x22");
    // columns 4..8, rows 6 and 7
    assert_eq!(tile, "[[100, 116], [101, 117], [102, 118], [103, 119]]");
}

#[test]
fn partition_views_with_partial_edges_and_padding() {
    let view = "partition_view<tile=(4x8), padding_value = neg_inf, tensor_view<6x9xf32, strides=[9,1]>>";
    let text = format!(
        "%tv = make_tensor_view %p, shape = [6, 9], strides = [9, 1] : tensor_view<6x9xf32, strides=[9,1]>
        %v = make_partition_view %tv : {view}
        %i = constant <i32: 1> : tile<i32>
        %x, %t = load_view_tko weak %v[%i, %i] : {view}, tile<i32> -> tile<4x8xf32>, token
        %s = constant <f32: 0.5> : tile<4x8xf32>
        %t2 = store_view_tko weak %s, %v[%i, %i] token = %t : tile<4x8xf32>, {view}, tile<i32> -> token
        print_tko \"%g\", %x : tile<4x8xf32> -> token"
    );
    let all: Vec<f32> = (0..54).map(|i| i as f32).collect();
    let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&all))]);
    assert_eq!(out.result.err(), None);
    let gone = "-inf, -inf, -inf, -inf, -inf, -inf, -inf";
    let row = "[-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf]";
    assert_eq!(out.printed, format!("[[44, {gone}], [53, {gone}], {row}, {row}]"));
    let mut want = all;
    (want[44], want[53]) = (0.5, 0.5);
    assert_eq!(as_f32s(&out.buffers[0]), want);
}

#[test]
fn an_index_outside_a_view_traps() {
    let view = "partition_view<tile=(4), tensor_view<8xf32, strides=[1]>>";
    for (index, fine) in [("1", true), ("2", false), ("-1", false)] {
        let text = format!(
            "%tv = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>
            %v = make_partition_view %tv : {view}
            %i = constant <i32: {index}> : tile<i32>
            %x, %t = load_view_tko weak %v[%i] : {view}, tile<i32> -> tile<4xf32>, token"
        );
        let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&[0.0; 8]))]);
        assert_eq!(
            out.result.as_ref().err().map(|t| t.code),
            if fine { None } else { Some(Code::IndexOutside) },
            "{index}"
        );
    }
}

#[test]
fn gather_and_scatter() {
    let view =
        "gather_scatter_view<tile=(4x2), padding_value = zero, tensor_view<4x8xf32, strides=[8,1]>, sparse_dim=0>";
    let text = format!(
        "%tv = make_tensor_view %p, shape = [4, 8], strides = [8, 1] : tensor_view<4x8xf32, strides=[8,1]>
        %v = make_gather_scatter_view %tv : {view}
        %rows = constant <i32: [3, 0, 3, 9]> : tile<4xi32>
        %c = constant <i32: 5> : tile<i32>
        %x, %t = load_view_tko weak %v[%rows, %c] : {view}, tile<4xi32>, tile<i32> -> tile<4x2xf32>, token
        print_tko \"%g\", %x : tile<4x2xf32> -> token"
    );
    let all: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&all))]);
    assert_eq!(out.result.err(), None);
    assert_eq!(out.printed, "[[29, 30], [5, 6], [29, 30], [0, 0]]");
}

#[test]
fn dynamic_tensor_views() {
    let ty = "tensor_view<?x?xf32, strides=[?,1]>";
    let view = format!("partition_view<tile=(2x2), {ty}>");
    let text = format!(
        "%tv = make_tensor_view %p, shape = [%n, %m], strides = [%m, 1] : tile<i32> -> {ty}
        %a, %b = get_tensor_shape %tv : {ty} -> tile<i64>
        %v = make_partition_view %tv : {view}
        %i, %j = get_index_space_shape %v : {view} -> tile<i32>
        print_tko \"%d %d %d %d\", %a, %b, %i, %j : tile<i64>, tile<i64>, tile<i32>, tile<i32> -> token"
    );
    let args = vec![Arg::Buffer(f32s(&[0.0; 15])), Arg::Scalar(3), Arg::Scalar(5)];
    let out = body("%p: tile<ptr<f32>>, %n: tile<i32>, %m: tile<i32>", &text, args);
    assert_eq!(out.printed, "3 5 2 3");
}

#[test]
fn i1_takes_a_byte_and_loads_canonically() {
    let text = "%v, %t = load_ptr_tko weak %p : tile<ptr<i1>> -> tile<i1>, token
        print_tko \"%d\", %v : tile<i1> -> token
        %t2 = store_ptr_tko weak %p, %v token=%t : tile<ptr<i1>>, tile<i1> -> token";
    let out = body("%p: tile<ptr<i1>>", text, vec![Arg::Buffer(vec![6])]);
    assert_eq!((out.printed.as_str(), out.buffers[0].as_slice()), ("1", &[1u8][..]));
}

#[test]
fn atomics() {
    let rmw = |mode: &str| {
        let text = format!(
            "%v = constant <i32: -2> : tile<i32>
            %r, %t = atomic_rmw_tko relaxed device %p, {mode}, %v : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
            print_tko \"%d\", %r : tile<i32> -> token"
        );
        let out = body("%p: tile<ptr<i32>>", &text, vec![Arg::Buffer(i32s(&[5]))]);
        assert_eq!(out.printed, "5", "{mode}");
        as_i32s(&out.buffers[0])[0]
    };
    let want = [
        ("add", 3),
        ("and", 4),
        ("or", -1),
        ("xor", -5),
        ("max", 5),
        ("min", -2),
        ("umax", -2),
        ("umin", 5),
        ("xchg", -2),
    ];
    for (mode, value) in want {
        assert_eq!(rmw(mode), value, "{mode}");
    }
    let text = format!(
        "{ROW}%v = constant <f32: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tile<8xf32>
        %one = constant <i32: 0> : tile<8xi32>
        %same = offset %pb, %one : tile<8xptr<f32>>, tile<8xi32> -> tile<8xptr<f32>>
        %r, %t = atomic_rmw_tko relaxed device %same, addf, %v : tile<8xptr<f32>>, tile<8xf32> -> tile<8xf32>, token"
    );
    let out = body("%p: tile<ptr<f32>>", &text, vec![Arg::Buffer(f32s(&[0.5]))]);
    assert_eq!(as_f32s(&out.buffers[0]), [36.5]);
    let text = "%c = constant <i32: 5> : tile<i32>\n%n = constant <i32: 9> : tile<i32>
        %a, %t = atomic_cas_tko relaxed device %p, %c, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
        %b, %u = atomic_cas_tko relaxed device %p, %c, %c : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
        print_tko \"%d %d\", %a, %b : tile<i32>, tile<i32> -> token";
    let out = body("%p: tile<ptr<i32>>", text, vec![Arg::Buffer(i32s(&[5]))]);
    assert_eq!((out.printed.as_str(), as_i32s(&out.buffers[0])), ("5 9", vec![9]));
}

#[test]
fn a_view_reduces_atomically_at_its_edge() {
    let view = "partition_view<tile=(4), tensor_view<6xi32, strides=[1]>>";
    let text = format!(
        "%tv = make_tensor_view %p, shape = [6], strides = [1] : tensor_view<6xi32, strides=[1]>
        %v = make_partition_view %tv : {view}
        %i = constant <i32: 1> : tile<i32>
        %x = constant <i32: [1, 2, 3, 4]> : tile<4xi32>
        %t = atomic_red_view_tko relaxed device %v[%i], add, %x : tile<4xi32>, {view}, tile<i32> -> token"
    );
    let out = body("%p: tile<ptr<i32>>", &text, vec![Arg::Buffer(i32s(&[10; 6]))]);
    assert_eq!(out.result.err(), None);
    assert_eq!(as_i32s(&out.buffers[0]), [10, 10, 10, 10, 11, 12]);
}

/// One device has one copy: each is what the same operation on plain memory is, at the edge too.
#[test]
fn multicast_memory_of_one_device() {
    let tensor = "tensor_view<6xi32, strides=[1], #cuda_tile.ptr_attr<multicast>>";
    let view = format!("partition_view<tile=(4), padding_value = zero, {tensor}>");
    let text = format!(
        "%tv = make_tensor_view %p, shape = [6], strides = [1] : tile<ptr<i32, <multicast>>> -> {tensor}
        %v = make_partition_view %tv : {view}
        %zero = constant <i32: 0> : tile<i32>
        %one = constant <i32: 1> : tile<i32>
        %x = constant <i32: [1, -2, 3, 4]> : tile<4xi32>
        %t0 = multimem_store_view_tko weak %v, %x[%zero] : {view}, tile<4xi32>, tile<i32> -> token
        %t1 = multimem_reduce_view_tko relaxed device %v, %x[%one] token = %t0 : {view}, tile<4xi32>, tile<i32>, token -> token
        %t2 = multimem_reduce_view_tko relaxed sys %v, %x[%one] token = %t1 attributes {{reduction = \
              #cuda_tile.multimem_reduction_kind<umax>}} : {view}, tile<4xi32>, tile<i32>, token -> token
        %y, %t3 = multimem_load_reduce_view_tko weak %v[%one] token = %t2 attributes {{reduction = \
              #cuda_tile.multimem_reduction_kind<min>}} : {view}, tile<i32>, token -> tile<4xi32>, token
        print_tko \"%d\", %y token = %t3 : tile<4xi32> -> token"
    );
    let out = body("%p: tile<ptr<i32, <multicast>>>", &text, vec![Arg::Buffer(i32s(&[10; 6]))]);
    assert_eq!(out.result.err(), None);
    assert_eq!(as_i32s(&out.buffers[0]), [1, -2, 3, 4, 11, -2]);
    assert_eq!(out.printed, "[11, -2, 0, 0]");
}

#[test]
fn globals_are_fresh_and_allocas_private() {
    let text = "cuda_tile.module @m {
        global @g <i32: [7, 8]> : tile<2xi32>
        entry @k() {
          %g = get_global @g : tile<ptr<i32>>
          %v, %t = load_ptr_tko weak %g : tile<ptr<i32>> -> tile<i32>, token
          %a = alloca num_elem = 4, alignment = 16 : tile<ptr<i32>>
          %t1 = store_ptr_tko weak %a, %v : tile<ptr<i32>>, tile<i32> -> token
          %w, %t2 = load_ptr_tko weak %a token=%t1 : tile<ptr<i32>> -> tile<i32>, token
          print_tko \"%d \", %w : tile<i32> -> token
          return } }";
    let out = launch(text, [2, 1, 1], 0, vec![]);
    assert_eq!((out.printed.as_str(), out.result.map(|r| r.warnings)), ("7 7 ", Ok(vec![])));
}

/// Every block adds 1 to a counter without atomics under a spin lock.
fn lock(acquire: &str, release: &str) -> String {
    format!(
        "cuda_tile.module @m {{
        global @lock <i32: 1> : tile<1xi32>
        entry @k(%p: tile<ptr<i32>>) {{
          %l = get_global @lock : tile<ptr<i32>>
          %zero = constant <i32: 0> : tile<i32>
          %one = constant <i32: 1> : tile<i32>
          %tok = loop : token {{
            %t0 = make_token : token
            %old, %t = atomic_cas_tko {acquire} device %l, %one, %zero token=%t0 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
            %got = trunci %old : tile<i32> -> tile<i1>
            if %got {{ break %t : token }}
          }}
          %v, %t1 = load_ptr_tko weak %p token=%tok : tile<ptr<i32>> -> tile<i32>, token
          %w = addi %v, %one : tile<i32>
          %t2 = store_ptr_tko weak %p, %w token=%t1 : tile<ptr<i32>>, tile<i32> -> token
          %x, %t3 = atomic_rmw_tko {release} device %l, xchg, %one token=%t2 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
          return
        }} }}"
    )
}

#[test]
fn a_spin_lock_across_blocks() {
    for seed in 0..4 {
        let out = launch(&lock("acquire", "release"), [50, 1, 1], seed, vec![Arg::Buffer(i32s(&[0]))]);
        assert_eq!(out.result.map(|r| r.warnings), Ok(vec![]), "seed {seed}");
        assert_eq!(as_i32s(&out.buffers[0]), [50]);
    }
}

#[test]
fn a_relaxed_lock_orders_nothing() {
    let out = launch(&lock("relaxed", "relaxed"), [4, 1, 1], 0, vec![Arg::Buffer(i32s(&[0]))]);
    let codes: Vec<Code> = out.result.map(|r| r.warnings.iter().map(|w| w.code).collect()).unwrap_or_default();
    assert!(codes.contains(&Code::DataRace), "{codes:?}");
}

#[test]
fn a_grid_barrier() {
    // Every block writes its slot, arrives, waits for all, and reads its neighbour's slot.
    let text = "cuda_tile.module @m {
        global @count <i32: 0> : tile<1xi32>
        entry @k(%a: tile<ptr<i32>>, %b: tile<ptr<i32>>) {
          %x, %y, %z = get_tile_block_id : tile<i32>
          %n, %ny, %nz = get_num_tile_blocks : tile<i32>
          %one = constant <i32: 1> : tile<i32>
          %zero = constant <i32: 0> : tile<i32>
          %c = get_global @count : tile<ptr<i32>>
          %mine = offset %a, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
          %t0 = store_ptr_tko weak %mine, %x : tile<ptr<i32>>, tile<i32> -> token
          %k, %t1 = atomic_rmw_tko acq_rel device %c, add, %one token=%t0 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
          %tok = loop iter_values(%w = %t1) : token -> token {
            %v, %t2 = load_ptr_tko acquire device %c token=%w : tile<ptr<i32>> -> tile<i32>, token
            %all = cmpi equal %v, %n, signed : tile<i32> -> tile<i1>
            if %all { break %t2 : token }
            continue %t2 : token
          }
          %next = addi %x, %one : tile<i32>
          %wrap = remi %next, %n signed : tile<i32>
          %theirs = offset %a, %wrap : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
          %v, %t3 = load_ptr_tko weak %theirs token=%tok : tile<ptr<i32>> -> tile<i32>, token
          %out = offset %b, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
          %t4 = store_ptr_tko weak %out, %v : tile<ptr<i32>>, tile<i32> -> token
          return
        } }";
    for seed in [0, 9] {
        let buffers = || vec![Arg::Buffer(i32s(&[-1; 16])), Arg::Buffer(i32s(&[-1; 16]))];
        let out = launch(text, [16, 1, 1], seed, buffers());
        assert_eq!(out.result.map(|r| r.warnings), Ok(vec![]));
        let want: Vec<i32> = (0..16).map(|i| (i + 1) % 16).collect();
        assert_eq!(as_i32s(&out.buffers[1]), want);
    }
}

#[test]
fn races_between_blocks_are_reported() {
    let text = "cuda_tile.module @m { entry @k(%p: tile<ptr<i32>>) {
          %x, %y, %z = get_tile_block_id : tile<i32>
          %t = store_ptr_tko weak %p, %x : tile<ptr<i32>>, tile<i32> -> token
          return } }";
    let warnings =
        |grid| launch(text, grid, 0, vec![Arg::Buffer(i32s(&[0]))]).result.map(|r| r.warnings).unwrap_or_default();
    assert_eq!(warnings([1, 1, 1]), vec![]);
    let found = warnings([3, 1, 1]);
    assert_eq!(found.iter().map(|w| w.code).collect::<Vec<_>>(), [Code::DataRace]);
}

#[test]
fn strong_accesses_race_with_weak_ones_only() {
    // An access, whether it writes, and whether it is strong.
    let accesses = [
        ("%v, %t = load_ptr_tko weak %p : tile<ptr<i32>> -> tile<i32>, token", false, false),
        ("%t = store_ptr_tko weak %p, %two : tile<ptr<i32>>, tile<i32> -> token", true, false),
        ("%v, %t = load_ptr_tko relaxed device %p : tile<ptr<i32>> -> tile<i32>, token", false, true),
        ("%t = store_ptr_tko relaxed device %p, %two : tile<ptr<i32>>, tile<i32> -> token", true, true),
        (
            "%v, %t = atomic_rmw_tko relaxed device %p, add, %two : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
            true,
            true,
        ),
        // It compares with a number that is nowhere in memory.
        (
            "%v, %t = atomic_cas_tko relaxed device %p, %never, %two : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
            false,
            true,
        ),
    ];
    for (one, writes, strong) in accesses {
        for (other, other_writes, other_strong) in accesses {
            let text = format!(
                "cuda_tile.module @m {{ entry @k(%p: tile<ptr<i32>>) {{
                  %x, %y, %z = get_tile_block_id : tile<i32>
                  %two = constant <i32: 2> : tile<i32>
                  %never = constant <i32: 99> : tile<i32>
                  %zero = constant <i32: 0> : tile<i32>
                  %first = cmpi equal %x, %zero, signed : tile<i32> -> tile<i1>
                  if %first {{ {one} }} else {{ {other} }}
                  return }} }}"
            );
            let races = (writes || other_writes) && !(strong && other_strong);
            for seed in 0..3 {
                let out = launch(&text, [2, 1, 1], seed, vec![Arg::Buffer(i32s(&[0]))]);
                let found: Vec<Code> = out.result.unwrap().warnings.iter().map(|w| w.code).collect();
                assert_eq!(found, if races { vec![Code::DataRace] } else { vec![] }, "{one} and {other}");
            }
        }
    }
}

#[test]
fn overlapping_accesses_need_a_token_path() {
    let text = |token: &str| {
        format!(
            "%one = constant <i32: 1> : tile<i32>
            %t = store_ptr_tko weak %p, %one : tile<ptr<i32>>, tile<i32> -> token
            %v, %u = load_ptr_tko weak %p {token} : tile<ptr<i32>> -> tile<i32>, token
            print_tko \"%d\", %v : tile<i32> -> token"
        )
    };
    let codes = |token: &str| {
        let out = body("%p: tile<ptr<i32>>", &text(token), vec![Arg::Buffer(i32s(&[0]))]);
        assert_eq!(out.printed, "1");
        out.result.map(|r| r.warnings.iter().map(|w| w.code).collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(codes("token=%t"), vec![]);
    assert_eq!(codes(""), vec![Code::NoTokenPath]);
}

#[test]
fn addresses_and_masks_must_be_defined() {
    let text = "%z = constant <i32: 0> : tile<i32>
        %q = divi %z, %z signed : tile<i32>
        %a = offset %p, %q : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
        %v, %t = load_ptr_tko weak %a : tile<ptr<i32>> -> tile<i32>, token";
    let trap = body("%p: tile<ptr<i32>>", text, vec![Arg::Buffer(i32s(&[0]))]).result.expect_err("trap");
    assert_eq!((trap.code, trap.op.as_str()), (Code::UndefinedUsed, "divi"));
}

#[test]
fn scatter_store_writes_rows() {
    let text = "%src = constant <f32: [[1.0, 2.0], [3.0, 4.0]]> : tile<2x2xf32>
        %dst = make_tensor_view %p, shape=[4, 4], strides=[4,1] : tensor_view<4x4xf32, strides=[4,1]>
        %rows = constant <i32: [2, 0]> : tile<2xi32>
        %c = constant <i32: 1> : tile<i32>
        %t = make_token : token
        %u = experimental$scatter_store %src, %dst, %rows, [%c] token = %t <{dim = 0 : i64}> :
          tile<2x2xf32>, tensor_view<4x4xf32, strides=[4,1]>, tile<2xi32>, tile<i32>, token -> token";
    let out = body("%p: tile<ptr<f32>>", text, vec![Arg::Buffer(f32s(&[0.0; 16]))]);
    assert_eq!(out.result.err(), None);
    let mut want = [0.0; 16];
    (want[9], want[10], want[1], want[2]) = (1.0, 2.0, 3.0, 4.0);
    assert_eq!(as_f32s(&out.buffers[0]), want);
}

/// Runs an entry body with so much memory for tiles.
fn within(limit: u64, grid: u32, text: &str) -> Result<Report, Trap> {
    let module = module(&format!("cuda_tile.module @m {{ entry @k() {{\n{text}\nreturn\n}} }}"));
    let launch = Launch { budget: Budget::of_memory(limit), ..Launch::new([grid, 1, 1], vec![]) };
    run(&module, "k", &launch, &mut VecMemory::new(), &mut Recorder::default())
}

#[test]
fn tiles_that_live_together_fit_the_budget_or_are_refused() {
    let sum = |live: usize| {
        let tiles = (0..live).map(|i| format!("%v{i} = iota : tile<65536xi32>\n"));
        let sums = (1..live).map(|i| {
            let before = if i == 1 { "v0".into() } else { format!("s{}", i - 1) };
            format!("%s{i} = addi %{before}, %v{i} : tile<65536xi32>\n")
        });
        tiles.chain(sums).collect::<String>()
    };
    for live in [2, 8, 32] {
        // Half a MiB for each tile, and one more at work.
        let least = (live as u64 + 1) << 19;
        let trap = within(least / 2, 1, &sum(live)).unwrap_err();
        assert_eq!((trap.code, trap.op.is_empty()), (Code::OutOfMemory, false), "{}", trap.message);
        assert!(trap.message.contains("cannot be evaluated: it needs"), "{}", trap.message);
        assert!(within(least + (4 << 20), 1, &sum(live)).is_ok(), "{live}");
    }
    // One after the other they take the place of one.
    let alone = (0..64).map(|i| format!("%v{i} = iota : tile<65536xi32>\n")).collect::<String>();
    assert_eq!(within(4 << 20, 4, &alone).err(), None);
}

#[test]
fn operations_of_every_kind_ask_for_memory() {
    let small = "%x = iota : tile<16xi32>\n";
    for op in [
        "%y = iota : tile<65536xi32>",
        "%o = reshape %x : tile<16xi32> -> tile<16x1xi32>\n%y = broadcast %o : tile<16x1xi32> -> tile<16x4096xi32>",
        "%y = alloca num_elem = 1048576, alignment = 16 : tile<ptr<f32>>",
    ] {
        let text = format!("{small}{op}\n");
        assert_eq!(within(64 << 20, 1, &text).err(), None, "{op}");
        assert_eq!(within(1 << 20, 1, &text).unwrap_err().code, Code::OutOfMemory, "{op}");
    }
    assert_eq!(within(100, 1, small).unwrap_err().code, Code::OutOfMemory);
}
