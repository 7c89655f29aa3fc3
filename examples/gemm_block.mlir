// One 64 x 64 matrix product in a single block.
//
// The three matrices are contiguous, so element (i, j) of each lies at offset i * 64 + j: one iota, reshaped, addresses
// them all.
// Shows: iota reshaped to two dimensions; the matrix-multiply operation without any loop.
//
// launch: grid=1 A=randn:f32[64x64] B=randn:f32[64x64] C=zeros:f32[64x64]
cuda_tile.module @gemm_block {
  entry @gemm_block(%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>) {
    %flat = iota : tile<4096xi32>
    %index = reshape %flat : tile<4096xi32> -> tile<64x64xi32>
    %zero = constant <f32: 0.0> : tile<64x64xf32>
    %a_2 = reshape %A : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %a_b = broadcast %a_2 : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
    %a_p = offset %a_b, %index : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
    %b_2 = reshape %B : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %b_b = broadcast %b_2 : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
    %b_p = offset %b_b, %index : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
    %c_2 = reshape %C : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %c_b = broadcast %c_2 : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
    %c_p = offset %c_b, %index : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
    %a, %ta = load_ptr_tko weak %a_p : tile<64x64xptr<f32>> -> tile<64x64xf32>, token
    %b, %tb = load_ptr_tko weak %b_p : tile<64x64xptr<f32>> -> tile<64x64xf32>, token
    %c = mmaf %a, %b, %zero : tile<64x64xf32>, tile<64x64xf32>, tile<64x64xf32>
    %t = store_ptr_tko weak %c_p, %c : tile<64x64xptr<f32>>, tile<64x64xf32> -> token
  }
}
