
// What runs the blocks of kernels. Names of this part begin with `girih_`, which no name of a program or model does.
#include <sched.h>

#define GIRIH_MOST_BLOCKS ((1 << 24) - 1)

// A site of a kernel and the message of its assertion; the last one has site -1.
typedef struct girih_said { int32_t site, message; } girih_said;

typedef struct girih_launch {
  int32_t (*kernel)(const girih_args *, girih_ctx *, int64_t, int64_t);
  const girih_said *said;
  const uint64_t *args;
  int64_t grid[3];
  void *const *globals;
  const girih_threads *threads;
  char *scratch;
  uint64_t scratch_bytes;
  int32_t failed;
} girih_launch;

static void girih_trap(girih_ctx *ctx, int32_t site, int32_t kind, int64_t block, int64_t element, int64_t value) {
  (void)block, (void)element, (void)value;
  girih_launch *launch = ctx->host;
  int32_t message = kind == 1 ? GIRIH_STEP : kind == 0 ? GIRIH_STOPPED : GIRIH_MEMORY;
  for (const girih_said *s = launch->said; kind == 0 && s->site >= 0; s++)
    if (s->site == site) message = s->message;
  __atomic_store_n(&launch->failed, message, __ATOMIC_RELAXED);
}

static void girih_yield(girih_ctx *ctx, int32_t site, int64_t block) {
  (void)ctx, (void)site, (void)block;
  sched_yield();
}

static int32_t girih_stop(girih_ctx *ctx) {
  return __atomic_load_n(&((girih_launch *)ctx->host)->failed, __ATOMIC_RELAXED) != 0;
}

static void girih_blocks(void *step, unsigned worker, int64_t lo, int64_t hi) {
  girih_launch *launch = step;
  girih_ctx ctx = {
    .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
    .scratch = launch->scratch ? launch->scratch + worker * launch->scratch_bytes : 0,
    .abort = &launch->failed,
    .globals = launch->globals,
    .host = launch,
    .trap = girih_trap,
    .yield = girih_yield,
    .stop = girih_stop,
  };
  if (!girih_stop(&ctx)) launch->kernel((const girih_args *)launch->args, &ctx, lo, hi);
}

// Runs every block; 0, or the number of a message.
static int girih_run(girih_launch *launch) {
  for (int axis = 0; axis < 3; axis++) {
    if (launch->grid[axis] == 0) return 0;
    if (launch->grid[axis] < 0 || launch->grid[axis] > GIRIH_MOST_BLOCKS) return GIRIH_TOO_LARGE;
  }
  if (launch->scratch_bytes && !launch->scratch) return GIRIH_NO_MEMORY;
  int64_t blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
  launch->failed = 0;
  if (launch->threads) launch->threads->run(launch->threads->user, blocks, girih_blocks, launch);
  else girih_blocks(launch, 0, 0, blocks);
  return launch->failed;
}

static inline __attribute__((unused)) int girih_step(girih_launch *launch, const int *bad,
    int32_t (*kernel)(const girih_args *, girih_ctx *, int64_t, int64_t), const girih_said *said, const int64_t *grid,
    const uint64_t *args) {
  if (*bad) return GIRIH_TOO_LARGE;
  launch->kernel = kernel;
  launch->said = said;
  launch->args = args;
  memcpy(launch->grid, grid, sizeof launch->grid);
  return girih_run(launch);
}

// What arrays without elements point to: a kernel may read ahead of a check.
static const uint8_t girih_nothing[4096] __attribute__((aligned(64)));

static inline __attribute__((unused)) uint64_t girih_at(const void *p) {
  return (uint64_t)(uintptr_t)(p ? p : girih_nothing);
}
