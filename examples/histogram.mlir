// Counts how often each of 64 values occurs, with atomic additions from all blocks.
//
// Each block takes 1024 values. Lanes of one tile may hit the same bin, and so may different blocks: the additions are
// atomic, and relaxed, since only their sum matters.
// Shows: a gather of pointers from data, masked atomics.
//
// launch: grid=98 values=arange:i32[100000] bins=zeros:i32[64] n=i32:100000
cuda_tile.module @histogram {
  entry @histogram(%values: tile<ptr<i32>>, %bins: tile<ptr<i32>>, %n: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %size = constant <i32: 1024> : tile<i32>
    %last = constant <i32: 63> : tile<1024xi32>
    %one = constant <i32: 1> : tile<1024xi32>
    %zero = constant <i32: 0> : tile<1024xi32>

    %start = muli %bx, %size : tile<i32>
    %start_1 = reshape %start : tile<i32> -> tile<1xi32>
    %start_n = broadcast %start_1 : tile<1xi32> -> tile<1024xi32>
    %lane = iota : tile<1024xi32>
    %index = addi %start_n, %lane : tile<1024xi32>
    %n_1 = reshape %n : tile<i32> -> tile<1xi32>
    %n_n = broadcast %n_1 : tile<1xi32> -> tile<1024xi32>
    %exists = cmpi less_than %index, %n_n, signed : tile<1024xi32> -> tile<1024xi1>

    %values_1 = reshape %values : tile<ptr<i32>> -> tile<1xptr<i32>>
    %values_n = broadcast %values_1 : tile<1xptr<i32>> -> tile<1024xptr<i32>>
    %values_p = offset %values_n, %index : tile<1024xptr<i32>>, tile<1024xi32> -> tile<1024xptr<i32>>
    %v, %t0 = load_ptr_tko weak %values_p, %exists, %zero
        : tile<1024xptr<i32>>, tile<1024xi1>, tile<1024xi32> -> tile<1024xi32>, token
    %bin = andi %v, %last : tile<1024xi32>

    %bins_1 = reshape %bins : tile<ptr<i32>> -> tile<1xptr<i32>>
    %bins_n = broadcast %bins_1 : tile<1xptr<i32>> -> tile<1024xptr<i32>>
    %bins_p = offset %bins_n, %bin : tile<1024xptr<i32>>, tile<1024xi32> -> tile<1024xptr<i32>>
    %old, %t1 = atomic_rmw_tko relaxed device %bins_p, add, %one, %exists
        : tile<1024xptr<i32>>, tile<1024xi32>, tile<1024xi1> -> tile<1024xi32>, token
  }
}
