// A driver whose device is this process, and whose launches only say what they are.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult cuInit(unsigned flags) { return (int)flags; }
CUresult cuDeviceGet(CUdevice *device, int n) { return *device = n; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { return *context = 0, device; }
CUresult cuCtxSetCurrent(CUcontext context) { return context != 0; }
CUresult cuCtxSynchronize(void) { return 0; }
CUresult cuModuleLoad(CUmodule *module, const char *path) { return *module = 0, !strstr(path, ".cubin"); }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  *function = (CUfunction)name;
  return module != 0;
}
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) { return !function || attribute != 8 || value <= 0; }
CUresult cuGetErrorString(CUresult result, const char **text) { return *text = result ? "failed" : "", 0; }
CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes) { return *at = (uintptr_t)malloc(bytes), !*at; }
CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t bytes) {
  return memset((void *)(uintptr_t)at, value, bytes), 0;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  return memcpy((void *)(uintptr_t)to, from, bytes), 0;
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) { return memcpy(to, (void *)(uintptr_t)from, bytes), 0; }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes), stream != 0;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, unsigned rank, void *at, const cuuint64_t *dims,
                                const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill) {
  printf("map rank %u dims", rank);
  for (unsigned i = 0; i < rank; i++) printf(" %llu", (unsigned long long)dims[i]);
  printf(" strides");
  for (unsigned i = 0; i + 1 < rank; i++) printf(" %llu", (unsigned long long)strides[i]);
  printf(" box");
  for (unsigned i = 0; i < rank; i++) printf(" %u", box[i]);
  printf("\n");
  memset(map, 0, sizeof *map);
  return type != 7 || !at || steps[0] != 1 || interleave || swizzle < 0 || promotion != 2 || fill;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z,
                        unsigned shared, CUstream stream, void **params, void **extra) {
  uint64_t first;
  memcpy(&first, params[0], sizeof first);
  printf("launch %s blocks %u, %u, %u threads %u, %u, %u shared %u params %llu \n", (const char *)function, gx, gy, gz, x, y, z,
         shared, (unsigned long long)first);
  return stream || extra;
}
