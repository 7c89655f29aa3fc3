use super::*;

#[test]
fn what_is_not_legal_is_refused_with_a_reason() {
    let cpu = context();
    let stored = ROWS.replace("load x[i]", "load y[i]");
    let other = OWN.replace("v[i, 19 - k]", "v[2 - i, k]");
    let triangle = ADD.replace("0..20", "0..i");
    let graphics = gpu(&[]);
    let nothing =
        ADD.replace("for j in 0..20: free", "for j in 0..20: free thread").replace("0..3: free", "0..3: serial");
    let short = ADD.replace("for j in 0..20: free", "for j in 0..2: free unroll");
    let early = SHARED_BY_TWO.replace("  local acc", "  f: f32 = load x[i]\n  store y[i] = f\n  local acc");
    let skipped =
        SHARED_BY_TWO.replace("    stage p", "    skip: i1 = test turn < i\n    if skip:\n      continue\n    stage p");
    let carried =
        SHARED_BY_TWO.replace("    stage p", "    w: i32 = index turn*8\n    stage p").replace("turn*8 + o", "w + o");
    let summed = SHARED_BY_TWO.replace("      acc[j_3] = d\n", "      acc[j_3] = d\n      at[j_3] = two\n");
    let in_order = SUMS.replace("0..3: free", "0..3: serial");
    let more = SUMS.replace("    s = 0.0\n", "    s = 0.0\n    store y[i] = 1.0\n");
    let unknown = SUMS.replace("y: ptr f32", "y: ptr f32, n: i64").replace("0..3", "0..n");
    for (before, line, ctx, why) in [
        (ADD, "rfactor j by 4 x 1 -> p, e", &cpu, "the order of its reduction is fixed"),
        (
            SUMS,
            "rfactor k by 4 x 2 -> p, e",
            &cpu,
            "the loops over the results, their stretches and the iterations of a stretch",
        ),
        (SUMS, "rfactor k by 4 x 0 -> p, e", &cpu, "expected iterations, a whole number from 1 on, found `0`"),
        (SUMS, "rfactor k by 400000000 x 1 -> p, e", &cpu, "268435456 are the most"),
        (&in_order, "rfactor k by 4 x 1 -> p, e", &cpu, "it stands in no free loop"),
        (
            &more,
            "rfactor k by 4 x 1 -> p, e",
            &cpu,
            "more stands before it than values and the start of its accumulator",
        ),
        (&unknown, "rfactor k by 4 x 1 -> p, e", &cpu, "a loop around it does not run from 0 to a constant"),
        (ADD, "unrol j", &cpu, "unknown primitive `unrol`; did you mean `unroll`?"),
        (ADD, "unroll q", &cpu, "unknown loop `q`; "),
        (ADD, "unroll", &cpu, "expected the name of a loop behind `unroll`"),
        (ADD, "unroll j:2", &cpu, "there are 1 loops of the name `j`"),
        (ADD, "split j by 0 -> a, c", &cpu, "a whole number from 1 on, found `0`"),
        (ADD, "split j by 99999999999 -> a, c", &cpu, "a whole number from 1 on, found `99999999999`"),
        (ADD, "split j by 4 -> a", &cpu, "expected `->` and the names of the two loops that it makes"),
        (ADD, "split j by 4 garud -> a, c", &cpu, "unexpected `garud`; the words here are guard"),
        (SUMS, "split k by 4 guard -> a, c", &cpu, "a reduction has no iteration that does nothing"),
        (ADD, "vector j by 3", &cpu, "3 x 1 are not powers of two"),
        (ADD, "vector i by 4", &cpu, "it runs in order, is placed already, or holds other loops"),
        (ADD, "bind j to block.x", &cpu, "a loop around it is not over blocks"),
        (ADD, "bind j to block.w", &cpu, "unknown place `block.w`; did you mean `block.x`?"),
        (ADD, "bind i to thread 64", &cpu, "cpu runs a block on one thread"),
        (ADD, "bind i to thread 0", &graphics, "expected a number of threads"),
        (ADD, "bind i to thread 2048", &graphics, "a block has 1 to 1024 threads, not 2048"),
        (ADD, "bind j to thread 64", &graphics, "a loop is not free, is placed, or stands in another free loop"),
        (ADD, "bind to thread 64", &graphics, "the threads come by the free loop `i`, too: name it"),
        (&nothing, "bind to thread 64", &graphics, "the threads share all that a block does"),
        (SUMS, "bind i, k to thread 64", &graphics, "reductions and free loops take lines of their own"),
        (ADD, "vector j by 4", &graphics, "it is not unrolled, and no reduction that threads share"),
        (ADD, "vector j by 4 x 2", &graphics, "a thread has no vector registers for accumulators"),
        (&short, "vector j by 4", &graphics, "nothing in it moves 4 elements at once"),
        (
            ADD,
            "vector i, j by 4",
            &cpu,
            "what it moves is not read along the outer loop and written along the inner one",
        ),
        (ADD, "prefetch i by 2", &cpu, "it reads no pieces of memory that lie far apart and are known beforehand"),
        (ADD, "prefetch i by 2", &graphics, "sm_90a has no caches that are asked"),
        (ADD, "prefetch_panel j", &cpu, "it reads no panel of memory that the loops around it read again"),
        (ADD, "prefetch_panel j", &graphics, "sm_90a has no caches that are asked"),
        (TURNED, "vector i, j by 16", &cpu, "its loops do not run over whole squares of 16 lanes"),
        (TURNED, "vector i by 8", &cpu, "it runs in order, is placed already, or holds other loops"),
        (ADD, "bind i to thread", &cpu, "a block at most"),
        (SUMS, "bind i to thread", &cpu, "a block at most"),
        (
            ADD,
            "fuse j, i -> n",
            &cpu,
            "they are not free loops, or serial ones, that stand in each other and in that order",
        ),
        (SUMS, "reorder i, k", &cpu, "they are not free loops that stand in each other"),
        (&triangle, "reorder j, i", &cpu, "a loop ends where one says that would stand in it"),
        (ADD, "sink j", &cpu, "nothing stands before it"),
        (SUMS, "serial k", &cpu, "it is not free, or is placed already"),
        (ADD, "privatise i", &cpu, "no buffer before it has a part for each of its iterations that only it uses"),
        (&other, "privatise i", &cpu, "no buffer before it has a part for each of its iterations that only it uses"),
        (&stored, "sink j", &cpu, "what stands before it is not the same when it is done again"),
        (ADD, "hoist j", &cpu, "nothing stands first in it that is the same for all its iterations"),
        (ADD, "pipeline i by 3", &cpu, "the loop does not run in order around stages"),
        (ADD, "pipeline i by 65", &cpu, "a pipeline has from 1 to 64 slots, not 65"),
        (SUMS, "pad s by 1", &cpu, "it has no rows in shared memory"),
        (SUMS, "swizzle s by 128", &cpu, "TMA does not fill it"),
        (SUMS, "own s by 8", &graphics, "it is not a tile of the block's own"),
        (SUMS, "own s by 8", &cpu, "cpu runs a block on one thread"),
        (SUMS, "reverse k", &cpu, "it is not free, or is placed already"),
        (&triangle, "reverse j", &cpu, "the bounds of its loops depend on each other"),
        (SUMS, "unbatch s", &cpu, "it is not a buffer of a program that has several matrices"),
        (SUMS, "box s by 8", &cpu, "TMA does not fill it"),
        (SUMS, "fill s by async", &cpu, "has no copies that go on by themselves"),
        (SUMS, "fill s by tma", &cpu, "has no copies of boxes"),
        (SUMS, "fill s by tam", &cpu, "unexpected `tam`; expected async or tma"),
        (ADD, "tensorize i as warpgroup", &cpu, "it is not the outermost loop of a product that warps compute"),
        (ADD, "tensorize i as tcgen05", &cpu, "it is not the outermost loop of a product that warps compute"),
        (ADD, "group i by 8", &cpu, "the loop is not over blocks"),
        (ADD, "persist i by 8", &cpu, "it is not the outermost loop of the only nest of blocks"),
        (ADD, "cluster i by 2", &cpu, "it is not the innermost loop over the blocks of a pipeline"),
        (SHARED_BY_TWO, "keep acc by 4", &cpu, "no serial loop that stands in no other one stages it"),
        (SHARED_BY_TWO, "keep p by 4", &graphics, "a GPU's blocks do not run one after another on a worker"),
        (&skipped, "keep p by 4", &cpu, "an iteration may go on to the next one, or end, before it"),
        (&early, "keep p by 4", &cpu, "the block stores to memory before its loop ends, or orders its accesses"),
        (&carried, "keep p by 4", &cpu, "it depends on a value that its loop computes"),
        (&summed, "keep p by 4", &cpu, "it reads a buffer that its loop writes"),
    ] {
        let said = one(before, line, ctx).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let gpu = gpu(&[]);
    let both = PRODUCT.replace("A[i*24 + q]", "A[i*24 + q + j]");
    let scattered = PRODUCT
        .replace("s: f32 = acc[i1, j1]\n", "s: f32 = acc[i1, j1]\n      w: i32 = index j1*2\n")
        .replace("C[i1*64 + j1]", "C[i1*128 + w]");
    let large = PRODUCT.replace("20", "2000");
    let added = PRODUCT.replace("C: ptr f32", "C: ptr f32 div 16").replace(
        "s: f32 = acc[i1, j1]\n",
        "r: f32 = acc[i1, j1]\n      u: f32 = load C[i1*64 + j1]\n      s: f32 = r + u\n",
    );
    for (before, line, ctx, why) in [
        (PRODUCT, "stage_read q by c rows", &cpu, "unexpected `c`; expected a or b"),
        (PRODUCT, "stage_read q by a", &cpu, "expected the form of the copy: rows, panels, windows, shared"),
        (PRODUCT, "stage_read q by a panel 3", &cpu, "unknown form `panel`; did you mean `panels`?"),
        (PRODUCT, "stage_read q by a panels 0", &cpu, "a whole number from 1 on, found `0`"),
        (PRODUCT, "stage_read q by a shared f61", &gpu, "unknown type `f61`; did you mean `f16`?"),
        (PRODUCT, "stage_read i by a rows", &cpu, "it is not the loop over the terms of a contraction"),
        (PRODUCT, "stage_read q by a windows", &cpu, "windows of it do not overlap"),
        (PRODUCT, "stage_read q by a shared", &cpu, "has no threads that share memory"),
        (&both, "stage_read q by a rows", &cpu, "it depends on n"),
        (PRODUCT, "stage_read q by a shared f16", &gpu, "f16 may not have every number of it"),
        (PRODUCT, "tile q by 3 x 64 x 8", &cpu, "blocks of 3 rows do not divide 20"),
        (PRODUCT, "tile q by 20 x 64 x 24", &cpu, "one block has all of it"),
        (PRODUCT, "tile q by 4", &cpu, "expected x behind `4`"),
        (PRODUCT, "tile q by 4 x 8", &cpu, "it is not the loop over the keys of attention"),
        (KEYS, "tile k by 4 x 8", &cpu, "it is not the loop over the keys of attention"),
        (KEYS, "tile key by 0 x 8", &cpu, "a whole number from 1 on, found `0`"),
        (KEYS, "tile key by 999999999 x 8", &cpu, "bytes; 268435456 are the most"),
        (PRODUCT, "tile i by 4 x 8 x 8", &cpu, "it is not the loop over the terms of a contraction"),
        (PRODUCT, "tensorize q as regsters 8 x 32 by 16", &cpu, "unknown unit `regsters`; did you mean `registers`?"),
        (PRODUCT, "tensorize q as registers 8 x 32", &cpu, "expected by behind `32`"),
        (PRODUCT, "tensorize q as registers 8 x 0 by 16", &cpu, "a whole number from 1 on, found `0`"),
        (PRODUCT, "tensorize q as registers 8 x 24 by 16", &cpu, "a tile of 24 columns by 16 lanes does not divide 64"),
        (PRODUCT, "tensorize q as registers 21 x 32 by 16", &cpu, "a tile of 21 rows does not fit 20 rows"),
        (PRODUCT, "tensorize q as registers 8 x 32 by 12", &cpu, "a vector has 2, 4, 8 and so on lanes, not 12"),
        (PRODUCT, "tensorize q as registers 8 x 32 by 16", &cpu, "an operand has a mask"),
        (PRODUCT, "tensorize q as tiles 8 x 32 by 16", &cpu, "an operand has a mask"),
        (PRODUCT, "tensorize q as threads 4 x 4", &cpu, "has no threads of blocks"),
        (PRODUCT, "tensorize q as registers 8 x 32 by 16", &gpu, "are those of its threads"),
        (PRODUCT, "tensorize q as threads 3 x 4", &gpu, "a tile of 3x4 does not divide 20x64"),
        (PRODUCT, "tensorize q as threads 1 x 1", &gpu, "take 1280 threads of a block, which has at most 1024"),
        (
            HALVES,
            "tensorize q as warps 4 x 1",
            &gpu,
            "32 x 64 elements, 16 x 8 at a time, are not shared by 4 x 1 warps",
        ),
        (
            HALVES,
            "tensorize q as groups 1 x 1",
            &gpu,
            "32 x 64 elements, 16 x 8 at a time, are not shared by 4 x 1 warps",
        ),
        (PRODUCT, "tensorize q as groups 1 x 1", &cpu, "has no threads of blocks"),
        (HALVES, "tensorize q as rows", &gpu, "expected warps behind `rows`"),
        (HALVES, "tensorize q as rows 3", &gpu, "3 warps do not share 32 rows, 16 at a time"),
        (HALVES, "tensorize q as rows 4", &gpu, "4 warps do not share 32 rows, 16 at a time"),
        (PRODUCT, "tensorize q as rows 1", &cpu, "has no threads of blocks"),
        (ATTENTION, "tensorize k4 as rows 4294967295", &gpu, "warps do not share 32 rows"),
        (
            PRODUCT,
            "stage_write acc",
            &cpu,
            "acc is not filled with a constant, summed up in one stretch of register tiles",
        ),
        (PRODUCT, "stage_write i1 by shared", &cpu, "cpu has no shared memory"),
        (PRODUCT, "stage_write i1 by tam", &gpu, "unexpected `tam`; expected shared or tma"),
        (PRODUCT, "stage_write j1 by shared", &gpu, "the loop does not stand in a block"),
        (PRODUCT, "stage_write i by shared", &gpu, "not two free loops of a constant length that end with one store"),
        (&scattered, "stage_write i1 by shared", &gpu, "where it is stored is computed for each element"),
        (&large, "stage_write i1 by shared", &gpu, "bytes of shared memory, and a block has at most"),
        (PRODUCT, "stage_write i1 by tma", &gpu, "not known to begin at multiples of 16 bytes"),
        (&added, "stage_write i1 by tma", &gpu, "the kernel touches the array otherwise"),
        (PRODUCT, "retype acc to f16", &gpu, "it is more than read and written, element by element"),
        (HALVES, "retype t to f8E4M3FN", &gpu, "f8E4M3FN may not have every number that it holds"),
        (HALVES, "retype t to i32", &gpu, "i32 is another kind of number than f32"),
        (HALVES, "retype t to f32", &gpu, "it holds f32 already"),
    ] {
        let said = one(before, line, ctx).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let in_order = EDGE.replace("free", "serial");
    let fixed_in_order = in_order.replace("j < n", "n < 50");
    let vectors = EDGE.replace("free", "free vector(8)").replace("loop kernel", "tile kernel");
    let asserts = EDGE.replace("store", "c: i1 = a < 2.0\n    assert c, \"small\"\n    store");
    let whole = TILES.replace("min(32, n)", "32");
    let stores = TILES.replace("t[i1*8 + i2] = a", "t[i1*8 + i2] = a\n      store y[i1*8 + i2] = a");
    let of_threads = BLOCKS.replace("b*16 + r*8 + t < n", "t < 4");
    for (before, line, why) in [
        (ADD, "peel j", "none of its conditions turns once within it"),
        (&in_order, "peel j", "its iterations run in order"),
        (&fixed_in_order, "unswitch j", "its iterations run in order"),
        (&vectors, "peel j", "it is placed already"),
        (&asserts, "peel j", "it contains an assertion"),
        (EDGE, "unswitch j", "it changes each of its conditions, or they are many"),
        (&of_threads, "unswitch t", "none of its conditions holds for all that a block does"),
        (&whole, "trim i1", "all that it fills is read, or it does more"),
        (&stores, "trim i1", "all that it fills is read, or it does more"),
        (TILES, "trim i", "all that it fills is read, or it does more"),
    ] {
        let said = one(before, line, &cpu).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    // A launched kernel has its grid.
    let launched = ADD.replace(" open", "");
    assert_eq!(one(&launched, "bind i to block.x", &cpu).unwrap_err(), "the launch gives the grid");
}
