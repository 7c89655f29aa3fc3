
#define GIRIH_EXTENT CUDA_ERROR_INVALID_VALUE
#define GIRIH_TOO_LARGE CUDA_ERROR_INVALID_VALUE
#define GIRIH_HELPER static inline __attribute__((unused))

// Kernels are launched with arguments of 64 bits, of which a kernel reads as many as its parameter has, and with descriptors.
typedef struct girih_kernel { const char *entry; unsigned threads, shared, maps; } girih_kernel;
