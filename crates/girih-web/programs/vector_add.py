# The sum of two vectors, in Python. Line by line, what it becomes stands beside it.
#
# launch: grid=4 x=randn:f32[1000] y=randn:f32[1000] out=zeros:f32[1000] n=i32:1000
import girih as tl


@tl.jit
def add(x, y, out, n, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    b = tl.load(y + i, mask=inside)
    tl.store(out + i, a + b, mask=inside)
