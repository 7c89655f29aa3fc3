//! The example of a library for a GPU: a program that runs it once, by the driver's API.

use super::super::header::filled;

/// An array of the device.
pub struct Array {
    pub name: String,
    /// An expression.
    pub bytes: String,
    /// The element type of an array whose first elements are printed.
    pub shown: Option<String>,
}

/// `numbers` are definitions, `before` is the code before the arrays, `call` the call that runs the kernel.
pub fn text(name: &str, numbers: &[String], before: &str, arrays: &[Array], call: &str, reads: bool) -> String {
    let mut out = filled(START, &[("$name", name)]);
    if reads {
        out += FILE;
    }
    out += &filled(MAIN, &[("$name", name)]);
    for number in numbers {
        out += &format!("  {number}\n");
    }
    out += before;
    for array in arrays {
        out += &format!(
            "  const size_t girih_bytes_of_{0} = {1};\n  CUdeviceptr {0} = zeros(girih_bytes_of_{0});\n",
            array.name, array.bytes
        );
    }
    out += &format!("  check({call});\n  check(cuCtxSynchronize());\n");
    for array in arrays {
        let Some(ty) = &array.shown else { continue };
        out += &filled(SHOWN, &[("$type", ty), ("$name", &array.name)]);
    }
    out + "  return 0;\n}\n"
}

const SHOWN: &str = "  {
    $type first[4] = {0};
    size_t some = girih_bytes_of_$name < sizeof first ? girih_bytes_of_$name : sizeof first;
    if (some) check(cuMemcpyDtoH(first, $name, some));
    for (int i = 0; i < 4; i++) printf(\"$name[%d] = %g\\n\", i, (double)first[i]);
  }
";

const START: &str = "// Runs $name once, on zeros, and prints the first of what it gives: cc example.c $name.c -lcuda
#include \"$name.h\"
#include <stdio.h>
#include <stdlib.h>

static void check(CUresult result) {
  if (!result) return;
  const char *text = 0;
  cuGetErrorString(result, &text);
  fprintf(stderr, \"CUDA: %s\\n\", text ? text : \"?\");
  exit(1);
}

// Memory of the device; at least a few bytes, so that it has an address.
static CUdeviceptr zeros(size_t bytes) {
  CUdeviceptr at = 0;
  check(cuMemAlloc(&at, bytes + 64));
  check(cuMemsetD8(at, 0, bytes + 64));
  return at;
}
";

const FILE: &str = "
static CUdeviceptr file(const char *path, size_t bytes) {
  FILE *in = fopen(path, \"rb\");
  char *read = malloc(bytes);
  if (!in || !read || fread(read, 1, bytes, in) != bytes) {
    perror(path);
    exit(1);
  }
  fclose(in);
  CUdeviceptr at = zeros(bytes);
  check(cuMemcpyHtoD(at, read, bytes));
  free(read);
  return at;
}
";

const MAIN: &str = "
int main(void) {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  $name_kernels kernels;
  check(cuInit(0));
  check(cuDeviceGet(&device, 0));
  check(cuDevicePrimaryCtxRetain(&context, device));
  check(cuCtxSetCurrent(context));
  check(cuModuleLoad(&module, \"$name.cubin\"));
  check($name_find(&kernels, module));
";
