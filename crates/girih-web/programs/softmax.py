# Softmax of each row, in Python. The row fits one tile of 1024.
#
# launch: grid=64 x=randn:f32[64x1000] out=zeros:f32[64x1000] n=i32:1000
import girih as tl


@tl.jit
def softmax(x, out, n, BLOCK: tl.constexpr = 1024):
    at = tl.arange(0, BLOCK)
    start = tl.program_id(0) * n
    row = tl.load(x + start + at, mask=at < n, other=-float("inf"))
    powers = tl.exp(row - tl.max(row))
    tl.store(out + start + at, powers / tl.sum(powers), mask=at < n)
