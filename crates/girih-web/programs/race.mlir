// A race: every block adds its number to the same element.
//
// Nothing orders the blocks, so that some additions may be lost. Run gives
// the sum that was meant, and a warning; Simulate names the two lines.
// Write an atomic addition in place of them, and both find nothing:
//
//   %was, %t = atomic_rmw_tko relaxed device %sum, addf, %x
//       : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
//
// launch: grid=8 sum=zeros:f32[1]
cuda_tile.module @race {
  entry @race(%sum: tile<ptr<f32>>) {
    %block, %y, %z = get_tile_block_id : tile<i32>
    %x = itof %block signed : tile<i32> -> tile<f32>
    %old, %t0 = load_ptr_tko weak %sum : tile<ptr<f32>> -> tile<f32>, token
    %new = addf %old, %x : tile<f32>
    %t1 = store_ptr_tko weak %sum, %new token=%t0 : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
