// A lock shared by all blocks: each adds its number to a total that is not atomic.
//
// A block spins until it swaps the lock from 0 to 1 (acquire), updates the total with plain accesses, and puts the
// lock back to 0 (release). Tokens order the accesses inside the lock.
// Shows: a loop without a bound, compare-and-swap, memory orders, a global.
//
// launch: grid=64 total=zeros:i32[1]
cuda_tile.module @mutex {
  global @lock <i32: 0> : tile<1xi32>
  entry @mutex(%total: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %lock = get_global @lock : tile<ptr<i32>>
    %open = constant <i32: 0> : tile<i32>
    %held = constant <i32: 1> : tile<i32>
    %start = make_token : token

    %inside = loop iter_values(%before = %start) : token -> token {
      %old, %after = atomic_cas_tko acquire device %lock, %open, %held token = %before
          : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
      %got = cmpi equal %old, %open, signed : tile<i32> -> tile<i1>
      if %got {
        break %after : token
      }
      continue %after : token
    }
    %v, %t0 = load_ptr_tko weak %total token = %inside : tile<ptr<i32>> -> tile<i32>, token
    %next = addi %v, %bx : tile<i32>
    %t1 = store_ptr_tko weak %total, %next token = %t0 : tile<ptr<i32>>, tile<i32> -> token
    %last, %t2 = atomic_rmw_tko release device %lock, xchg, %open token = %t1
        : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  }
}
