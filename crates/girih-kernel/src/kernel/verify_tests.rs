//! Errors in kernels, and their messages.

use crate::kernel::{parse, print, verify};

fn wrong(text: &str) -> Vec<String> {
    let kernel = parse::parse(text).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
    assert_eq!(print::print(&kernel), text, "the text reads back as another");
    verify::verify(&kernel)
}

fn block(head: &str, body: &str) -> String {
    let lines: String = body.lines().map(|l| format!("  {l}\n")).collect();
    format!("kernel k(o: ptr<f32>, h: ptr<f16>) {head} {{\n{lines}}}\n")
}

#[test]
fn threads_read_back_and_are_accepted() {
    let text = block(
        "grid (8, 1, 1) threads 256 scratch 16 shared 4128",
        "slot acc: f32[4] at 0\nshared tile: f32[1024] at 0\nshared flags: i32[4] at 4096\nx: f32x4 = load o[tx*4]\n\
             store tile[tx*4] = x\nbarrier\ny: f32 = load tile[tx%32*32 + tx//32]\nstore acc[0] = y\nsyncwarp\n\
             copy async tile[tx*4] = o[tx*4] bytes 16\ncopy async tile[tx] = o[tx + 1] bytes 4 where tx < 7\ncommit\n\
             wait groups 0\nz: f32 = shuffle xor y, 16:i32\nd: f32 = shuffle down z, 1:i32\ni: f32 = shuffle idx d, 0:i32\n\
             store o[tx] = i",
    );
    assert_eq!(wrong(&text), [""; 0]);
}

#[test]
fn memory_that_a_worker_keeps_is_its_own() {
    let text = "scratch 32\nkept a: f32[4] at 0\nzeroed b: i64[1] at 16\nslot c: f32[2] at 24";
    let with = |text: &str| {
        let (head, slots) = text.split_once('\n').unwrap_or_default();
        wrong(&block(head, &format!("{slots}\nx: f32 = load a[0]\nstore o[0] = x")))
    };
    assert_eq!(with(text), [""; 0]);
    let message = "the slot `a` is kept by a worker, so it has one thread and bytes of its own";
    assert_eq!(with(&text.replace("at 24", "at 8")), [message]);
    assert!(with(&text.replace("scratch 32", "threads 32 scratch 32")).contains(&message.to_string()));
}

#[test]
fn a_prefetch_names_global_memory() {
    let text = block("scratch 16", "slot acc: f32[4] at 0\nprefetch o[bx*1024 + 16]");
    assert_eq!(wrong(&text), [""; 0]);
}

#[test]
fn what_threads_must_keep_to() {
    for (head, body, message) in [
        ("scratch 16", "slot acc: f32[4] at 0\nprefetch acc[0]", "a prefetch is of whole bytes of global memory"),
        ("threads 64 scratch 0", "prefetch o[tx]", "`prefetch` needs a kernel of one thread"),
        ("scratch 0", "store o[tx] = 0.0:f32", "`tx` needs a block of several threads"),
        ("scratch 0", "barrier", "`barrier` needs a block"),
        ("threads 1025 scratch 0", "barrier", "1025 threads"),
        ("threads 0 scratch 0", "return", "0 threads"),
        ("threads 48 scratch 0", "syncwarp", "whole warps"),
        ("threads 64 scratch 0 shared 64", "shared s: f32[17] at 0", "`s` reaches past the shared"),
        ("threads 64 scratch 60", "slot s: f32[16] at 0", "`s` reaches past the scratch"),
        ("threads 64 scratch 0 shared 64", "shared s: f32[4] at 8", "not at a multiple of 16"),
        (
            "threads 64 scratch 0 shared 64",
            "shared a: f32[8] at 0\nshared b: mbarrier[2] at 16",
            "the mbarriers `b` and the shared slot `a` overlap",
        ),
        ("threads 64 scratch 0", "x: f32x8 = load o[0]", "a power of two of elements and at most 16 bytes"),
        ("threads 64 scratch 0", "x: f32x3 = load o[0]", "a power of two of elements"),
        ("scratch 0", "commit", "`commit` needs a block"),
        ("scratch 0", "wait groups 0", "`wait groups` needs a block"),
        ("threads 64 scratch 16", "slot s: f32[4] at 0\ncopy async s[0] = o[0] bytes 4", "to a shared slot"),
        ("threads 64 scratch 0", "copy async o[0] = o[1] bytes 4", "from global memory to a shared slot"),
        ("threads 64 scratch 0", "x: f64x4 = load o as f64[0]", "at most 16 bytes"),
        ("threads 64 scratch 0", "x: f32 = load o[0]\ny: i32 = shuffle xor x, 1:i32", "a shuffle of f32 gives i32"),
    ] {
        let all = wrong(&block(head, body));
        assert!(all.iter().any(|e| e.contains(message)), "{body}: {all:?}");
    }
    for (copy, message) in [
        ("s[0] = o[0] bytes 12", "4, 8 or 16 bytes, not 12"),
        ("s[0] = h[0] bytes 4", "f16 is copied to memory of f32"),
        ("t[0] = h[0] bytes 2", "4, 8 or 16 bytes, not 2"),
        ("s[tx*4 + 2] = o[0] bytes 16", "never at a multiple of 16"),
        ("t[8*tx + 4] = h[0] bytes 16", "never at a multiple of 16"),
    ] {
        let slots = "shared s: f32[256] at 0\nshared t: f16[512] at 1024\n";
        let all = wrong(&block("threads 64 scratch 0 shared 2048", &format!("{slots}copy async {copy}")));
        assert!(all.len() == 1 && all[0].contains(message), "{copy}: {all:?}");
    }
}

#[test]
fn what_tma_does_not_copy_is_refused() {
    let head = "grid (1, 1, 1) threads 64 scratch 0 shared 8256";
    let with = |tensor: &str, copy: &str| {
        block(
            head,
            &format!(
                "shared s: f32[1024] at 0\nshared t: f16[1024] at 4096\nshared u: f32[460] at 6160\n\
                     shared full: mbarrier[2] at 8000\ntensor m: {tensor}\nif tx == 0 {{\n  init full[0] count 1\n  \
                     fence init\n  fence async\n}}\nbarrier\nif tx == 0 {{\n  arrive full[0] expect 4096\n  \
                     arrive full[1]\n  copy tensor {copy}\n}}\nwait full[bx%2] parity 0"
            ),
        )
    };
    let (good, copy) = ("f32[256, 64] of o strides (64) box [32, 32]", "s[0] = m[bx*32, tx] on full[0]");
    assert_eq!(wrong(&with(good, copy)), [""; 0]);
    assert_eq!(wrong(&with(&format!("{good} swizzle 128"), copy)), [""; 0]);
    assert_eq!(
        wrong(&with(
            "f16[9, 9, 9, 64] of h strides (576, 64, 64) box [1, 1, 2, 64]",
            "t[0] = m[0, 1, 2, 3] on full[0]"
        )),
        [""; 0]
    );
    for (tensor, message) in [
        (
            "f32[256, 64] of o strides (64) box [512, 32]",
            "the box of the tensor `m` is [512, 32]; an extent is 1 to 256",
        ),
        ("f32[256, 64] of o strides (64) box [0, 32]", "an extent is 1 to 256"),
        ("f32[256, 64] of o strides (64) box [32, 6]", "a row of the box of the tensor `m` has 24 bytes"),
        ("f32[256, 64] of o strides (62) box [32, 32]", "a stride of the tensor `m` is 248 bytes"),
        ("f32[256, 64] of o strides (64, 1) box [32, 32]", "2 dimensions, 2 strides and a box of 2"),
        ("f32[256, 64] of o strides (64) box [32, 32] swizzle 64", "needs rows of as many"),
        ("f32[256, 64] of o strides (64) box [32, 32] swizzle 48", "that is 32, 64 or 128"),
        ("f32[256, 64] of h strides (64) box [32, 32]", "is not of a parameter that is an address of f32"),
        ("f32[256, bx] of o strides (64) box [32, 32]", "do not follow from the parameters"),
        ("f32[256, 64] of o strides (64) box [64, 32]", "has 2048 elements, and `s` has 1024"),
    ] {
        let all = wrong(&with(tensor, copy));
        assert!(all.iter().any(|e| e.contains(message)), "{tensor}: {all:?}");
    }
    for (copy, message) in [
        ("s[16] = m[0, 0] on full[0]", "lies at a place in `s` that is not a multiple of 128 bytes"),
        ("u[0] = m[0, 0] on full[0]", "lies at a place in `u` that is not a multiple of 128 bytes"),
        ("t[0] = m[0, 0] on full[0]", "lies in a shared slot of f32"),
        ("s[0] = m[0] on full[0]", "1 coordinates are given to the tensor `m`, which has 2"),
        ("s[0] = m[0, 0] on s[0]", "`copy tensor` expects an mbarrier"),
    ] {
        let all = wrong(&with(good, copy));
        assert!(all.iter().any(|e| e.contains(message)), "{copy}: {all:?}");
    }
    for (body, message) in [
        ("shared full: mbarrier[2] at 0\nx: i64 = load full[0]", "an mbarrier is read or written as memory"),
        ("shared full: mbarrier[65] at 0", "65 mbarriers; it has at most 64"),
        ("shared full: mbarrier[2] at 0\ninit full[0] count 0", "an mbarrier counts 1 to 1048575 arrivals, not 0"),
        ("shared full: mbarrier[2] at 0\narrive full[0] expect 1048576", "counts less than 1048576 bytes"),
    ] {
        let all = wrong(&block("threads 64 scratch 0 shared 1024", body));
        assert!(all.iter().any(|e| e.contains(message)), "{body}: {all:?}");
    }
}

#[test]
fn clusters_have_blocks() {
    let full = "shared full: mbarrier[2] at 0\n";
    let good = format!("{full}arrive full[0] of 1\nbarrier cluster");
    assert_eq!(wrong(&block("threads 64 cluster 2 scratch 0 shared 1024", &good)), [""; 0]);
    for (head, body, message) in [
        ("threads 64", "barrier cluster", "`barrier cluster` needs a cluster of more than 1 blocks; this has 1"),
        (
            "threads 64 cluster 2",
            "arrive full[0] of 2",
            "`arrive of` needs a cluster of more than 2 blocks; this has 2",
        ),
        ("threads 64 cluster 0", "", "a cluster has 0 blocks; it has 1 to 8, of at most 1024 threads together"),
        ("threads 64 cluster 9", "", "a cluster has 9 blocks"),
        ("threads 544 cluster 2", "", "a cluster has 2 blocks; it has 1 to 8, of at most 1024 threads together"),
        ("threads 48 cluster 2", "", "the blocks of a cluster have whole warps of 32 threads, not 48 threads"),
    ] {
        let all = wrong(&block(&format!("{head} scratch 0 shared 1024"), &format!("{full}{body}")));
        assert!(all.iter().any(|e| e.contains(message)), "{head}: {body}: {all:?}");
    }
    let many = "shared full: mbarrier[33] at 0";
    let all = wrong(&block("threads 64 cluster 2 scratch 0 shared 1024", many));
    assert!(all.iter().any(|e| e.contains("33 mbarriers; it has at most 64, with those of its cluster")), "{all:?}");
}

#[test]
fn a_thread_moves_16_bytes_of_anything() {
    for lanes in [4, 8] {
        let body = format!("x: f16x{lanes} = load h[tx*{lanes}]\nstore h[tx*{lanes}] = x");
        assert_eq!(wrong(&block("threads 64 scratch 0", &body)), [""; 0]);
    }
}

#[test]
fn a_shuffle_needs_its_words() {
    let text = block("threads 64 scratch 0", "x: f32 = load o[0]\ny: f32 = shuffle up x, 1:i32");
    assert_eq!(parse::parse(&text).unwrap_err().message, "expected `xor`, `down` or `idx`, found `up`");
}

#[test]
fn a_warp_has_the_lanes_that_the_kernel_says() {
    let sum = "x: i32 = index tx\ny: i32 = shuffle xor x, 32:i32";
    assert_eq!(wrong(&block("threads 128 warp 64 scratch 0", sum)), [""; 0]);
    let half = wrong(&block("threads 96 warp 64 scratch 0", sum));
    assert!(half[0].contains("needs whole warps of 64 threads, and a block has 96"), "{half:?}");
    for lanes in ["0", "24", "128"] {
        let none = wrong(&block(&format!("threads 128 warp {lanes} scratch 0"), "barrier"));
        assert!(none[0].contains(&format!("a warp has {lanes} lanes; it has a power of two")), "{none:?}");
    }
}
