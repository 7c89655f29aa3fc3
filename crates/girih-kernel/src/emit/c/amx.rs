//! A processor's tiles in C: instructions if the compiler knows them, and otherwise arrays in their place.

use crate::emit::cstyle::support::Support;
use crate::kernel::ir::*;

/// How a kernel leaves the tiles: they stay set up if other kernels may run on a thread before this one ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    Free,
    SetUp,
}

/// How a kernel leaves the tiles; `None` where it uses none.
pub fn used(kernel: &Kernel) -> Option<Left> {
    let (mut tiles, mut yields) = (false, false);
    statements(&kernel.body, &mut |stmt| {
        tiles |= matches!(stmt, Stmt::AmxLoad { .. });
        yields |= matches!(stmt, Stmt::Yield { .. });
    });
    tiles.then_some(if yields { Left::SetUp } else { Left::Free })
}

/// Declares `tile_load` and the other functions on tiles.
pub fn declare(support: &mut Support) {
    let (words, floats) = (support.ty("i32", 16), support.ty("f32", 16));
    let [of_floats, of_bytes] = ["dot2_f32", "dot4_i32"].map(|f| support.call(f, 16));
    support.ty("u8", 1);
    let text = format!(
        r#"#if defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
// Eight tiles of 16 rows of 64 bytes.
static const struct {{ uint8_t palette, row, unused[14]; uint16_t bytes[16]; uint8_t rows[16]; }} tiles_shape = {{
  1, 0, {{0}}, {{64, 64, 64, 64, 64, 64, 64, 64}}, {{16, 16, 16, 16, 16, 16, 16, 16}}}};
// The system grants tiles to a process on request: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
INLINE void tiles_begin(void) {{
  static int asked;
  if (!asked) {{
    long answer = 158;
    __asm__ volatile("syscall" : "+a"(answer) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    asked = 1;
  }}
  __asm__ volatile("ldtilecfg %0" : : "m"(tiles_shape));
}}
#define tiles_end() __asm__ volatile("tilerelease")
#define tile_load(tile, at, bytes) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(at), "r"((int64_t)(bytes)) : "memory")
#define tile_store(tile, at, bytes) \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(at), "r"((int64_t)(bytes)) : "memory")
#define tile_add_bf16(sums, a, b) __asm__ volatile("tdpbf16ps %tmm" #b ", %tmm" #a ", %tmm" #sums)
#define tile_add_u8s8(sums, a, b) __asm__ volatile("tdpbusd %tmm" #b ", %tmm" #a ", %tmm" #sums)
#else
static __thread {words} tiles[8][16];
#define tiles_begin() ((void)0)
#define tiles_end() ((void)0)
#define tile_load(tile, at, bytes) tile_moved((void *)(at), bytes, tiles[tile], 1)
#define tile_store(tile, at, bytes) tile_moved((void *)(at), bytes, tiles[tile], 0)
INLINE void tile_moved(void *at, int64_t bytes, {words} *tile, int in) {{
  for (int row = 0; row < 16; row++) {{
    void *there = (uint8_t *)at + row * bytes;
    __builtin_memcpy(in ? (void *)&tile[row] : there, in ? there : (void *)&tile[row], 64);
  }}
}}
INLINE void tile_add_bf16(int sums, int a, int b) {{
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++) {{
      {words} x = tiles[a][row][k] - ({words}){{0}};
      tiles[sums][row] = ({words}){of_floats}(x, tiles[b][k], ({floats})tiles[sums][row]);
    }}
}}
INLINE void tile_add_u8s8(int sums, int a, int b) {{
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++) {{
      {words} x = tiles[a][row][k] - ({words}){{0}};
      tiles[sums][row] = {of_bytes}(x, tiles[b][k], tiles[sums][row]);
    }}
}}
#endif
"#
    );
    support.block("tiles", &text);
}
