// girih run --device eval --arg f=f32:1
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %r = experimental$extern_elementwise %f {libname = "libdevice", libpath = "", pure = true, symbol = "__nv_fast"} : (tile<f32>) -> tile<f32>
    print_tko "%f\n", %r : tile<f32> -> token
    return
  }
}
