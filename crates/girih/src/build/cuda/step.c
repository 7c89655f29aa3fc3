
GIRIH_HELPER CUresult girih_step(const girih_kernels *kernels, CUstream stream, const int *bad, int n, const int64_t *grid,
                                 const uint64_t *args, unsigned count) {
  const girih_kernel *kernel = girih_table + n;
  if (*bad) return CUDA_ERROR_INVALID_VALUE;
  for (int axis = 0; axis < 3; axis++) {
    if (grid[axis] == 0) return CUDA_SUCCESS;
    if (grid[axis] < 0 || grid[axis] > (axis ? 65535 : INT32_MAX)) return CUDA_ERROR_INVALID_VALUE;
  }
  CUtensorMap maps[GIRIH_MOST_MAPS];
  void *params[GIRIH_MOST_PARAMS];
  for (unsigned i = 0; i < count; i++) params[i] = (void *)(args + i);
  for (unsigned i = 0; i < kernel->maps; i++) params[count + i] = maps + i;
  CUresult result = girih_describe(n, grid, args, maps);
  if (result) return result;
  return cuLaunchKernel(kernels->at[n], (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], kernel->threads, 1, 1,
                        kernel->shared, stream, params, 0);
}
