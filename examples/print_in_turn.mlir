// Blocks print one at a time, guarded by a lock.
//
// The lock is a global that starts at 1 (free). A block spins until it swaps it to 0, prints, and puts it back.
// Acquire and release make the section inside really exclusive on a GPU too.
// Shows: a cross-block lock, a condition from an atomic's result.
//
// launch: grid=8
cuda_tile.module @print_in_turn {
  global @free <i32: 1> : tile<1xi32>
  entry @print_in_turn() {
    %x, %y, %z = get_tile_block_id : tile<i32>
    %gx, %gy, %gz = get_num_tile_blocks : tile<i32>
    %lock = get_global @free : tile<ptr<i32>>
    %taken = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %start = make_token : token
    %mine = loop iter_values(%t = %start) : token -> token {
      %old, %t1 = atomic_cas_tko acquire device %lock, %one, %taken token = %t
          : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
      %got = trunci %old : tile<i32> -> tile<i1>
      if %got {
        break %t1 : token
      }
      continue %t1 : token
    }
    %printed = print_tko "block %i of %i\n", %x, %gx token = %mine : tile<i32>, tile<i32> -> token
    %last, %t2 = atomic_rmw_tko release device %lock, xchg, %one token = %printed
        : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  }
}
