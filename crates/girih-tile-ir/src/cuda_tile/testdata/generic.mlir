!i = !cuda_tile.tile<i32>
!f = tile<4xf32>
#near = #cuda_tile.rounding<nearest_even>
#loc = loc("kernel.py":3:1)
#loc1 = loc("kernel.py":4:7)
"builtin.module"() ({
  "cuda_tile.module"() <{sym_name = "kernels", producer = "hand"}> ({
    "cuda_tile.global"() <{alignment = 16 : i64, constant, sym_name = "g", symbol_visibility = #cuda_tile.symbol_visibility<private>, value = dense<[1.0, 2.0, 3.0, 4.0]> : !cuda_tile.tile<4xf32>}> : () -> ()
    "cuda_tile.entry"() <{function_type = (!cuda_tile.tile<ptr<f32>>, !i, tile<i1>) -> (), optimization_hints = #cuda_tile.optimization_hints<sm_100 = {occupancy = 2 : i32}>, sym_name = "all"}> ({
    ^bb0(%p: !cuda_tile.tile<!cuda_tile.ptr<f32>>, %n: !i, %c: tile<i1>):
      %zero = "cuda_tile.constant"() <{value = dense<0> : !i}> : () -> !i
      %x = "cuda_tile.constant"() <{value = dense<[0.5, 1.5, -2.0, 0x7F800000]> : tile<4xf32>}> : () -> !f loc(#loc1)
      %y = "cuda_tile.addf"(%x, %x) <{flush_to_zero, rounding_mode = #near}> : (!f, !f) -> !f loc("other.py":1:2)
      %q = "cuda_tile.divi"(%n, %n) <{rounding = #cuda_tile.rounding<positive_inf>, signedness = #cuda_tile.signedness<signed>}> : (!i, !i) -> !i
      %io = "cuda_tile.iota"() : () -> tile<4xi32>
      %b1 = "cuda_tile.reshape"(%p) : (tile<ptr<f32>>) -> tile<1xptr<f32>>
      %b4 = "cuda_tile.broadcast"(%b1) : (tile<1xptr<f32>>) -> tile<4xptr<f32>>
      %ps = "cuda_tile.offset"(%b4, %io) : (tile<4xptr<f32>>, tile<4xi32>) -> tile<4xptr<f32>>
      %t0 = "cuda_tile.make_token"() : () -> !cuda_tile.token
      %l:2 = "cuda_tile.load_ptr_tko"(%ps, %t0) <{memory_ordering_semantics = #cuda_tile.memory_ordering_semantics<acquire>, memory_scope = #cuda_tile.memory_scope<device>, operandSegmentSizes = array<i32: 1, 0, 0, 1>}> : (tile<4xptr<f32>>, token) -> (!f, token)
      %st = "cuda_tile.store_ptr_tko"(%ps, %l#0, %l#1) <{memory_ordering_semantics = #cuda_tile.memory_ordering_semantics<weak>}> : (tile<4xptr<f32>>, !f, token) -> token
      %sum = "cuda_tile.reduce"(%y) <{dim = 0 : i32, identities = [0.0 : f32]}> ({
      ^bb0(%e: tile<f32>, %acc: tile<f32>):
        %r = "cuda_tile.addf"(%e, %acc) <{rounding_mode = #near}> : (tile<f32>, tile<f32>) -> tile<f32>
        "cuda_tile.yield"(%r) : (tile<f32>) -> ()
      }) : (!f) -> tile<f32>
      %for = "cuda_tile.for"(%zero, %n, %q, %x) <{unsignedCmp}> ({
      ^bb0(%iv: !i, %carried: !f):
        "cuda_tile.continue"(%carried) : (!f) -> ()
      }) : (!i, !i, !i, !f) -> !f
      "cuda_tile.if"(%c) ({
        "cuda_tile.assert"(%c) <{message = "no"}> : (tile<i1>) -> ()
        "cuda_tile.yield"() : () -> ()
      }, {
      }) : (tile<i1>) -> ()
      %tv = "cuda_tile.make_tensor_view"(%p, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tile<ptr<f32>>, !i, !i) -> tensor_view<?x128xf32, strides=[?,1]>
      %pm = "cuda_tile.permute"(%b1) <{permutation = array<i32: 0>}> : (tile<1xptr<f32>>) -> tile<1xptr<f32>>
      %as = "cuda_tile.assume"(%n) <{predicate = #cuda_tile.div_by<8>}> : (!i) -> !i
      "cuda_tile.return"() : () -> () loc(#loc)
    }) : () -> () loc(#loc)
  }) : () -> ()
}) : () -> ()
