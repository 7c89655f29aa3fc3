// Hello from every block of a grid.
//
// The smallest tile program: it reads its block id and the grid's size and prints them.
// Blocks run in any order, so the lines may come in any order (`--print-order index` sorts them).
//
// launch: grid=2,3,1
cuda_tile.module @hello {
  entry @hello() {
    %x, %y, %z = get_tile_block_id : tile<i32>
    %gx, %gy, %gz = get_num_tile_blocks : tile<i32>
    %t = print_tko "Hello, I am block <%i, %i, %i> of a <%i, %i, %i> grid.\n", %x, %y, %z, %gx, %gy, %gz
        : tile<i32>, tile<i32>, tile<i32>, tile<i32>, tile<i32>, tile<i32> -> token
  }
}
