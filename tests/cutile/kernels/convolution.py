"""2-D convolution as a matrix product that is never written down: rows are output pixels, columns output channels, the
inner dimension runs over channels and the places of the filter. A depthwise one beside it, tile by tile."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def conv2d_gather(x, w, y, h_out: ct.Constant[int], w_out: ct.Constant[int], kh: ct.Constant[int],
                  kw: ct.Constant[int], stride: ct.Constant[int], pad: ct.Constant[int], tm: ct.Constant[int],
                  tn: ct.Constant[int], tk: ct.Constant[int]):
    """x: (batch, height, width, channels), w: (kh kw channels, filters), y: (batch height width, filters)."""
    i, j = ct.bid(0), ct.bid(1)
    pixel = i * tm + ct.arange(tm, dtype=ct.int32)
    image = pixel // (h_out * w_out)
    row = pixel // w_out % h_out * stride - pad
    col = pixel % w_out * stride - pad
    channels = x.shape[3]
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(ct.cdiv(kh * kw * channels, tk)):
        inner = k * tk + ct.arange(tk, dtype=ct.int32)
        channel = inner % channels
        place = inner // channels
        # Places outside the image, and past the filter, are out of bounds and read as zero.
        patch = ct.gather(x, (image[:, None], row[:, None] + (place // kw)[None, :],
                              col[:, None] + (place % kw)[None, :], channel[None, :]))
        filters = ct.load(w, (k, j), (tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(patch, filters, acc)
    ct.store(y, (i, j), acc.astype(y.dtype))


@ct.kernel
def conv2d_taps(x, w, y, kh: ct.Constant[int], kw: ct.Constant[int], tm: ct.Constant[int], tn: ct.Constant[int],
                tk: ct.Constant[int]):
    """The same with unit stride and no padding, one product for each place of the filter: a block owns a piece of one
    output row."""
    both, j, f = ct.bid(0), ct.bid(1), ct.bid(2)
    image, row = both // y.shape[1], both % y.shape[1]
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    cols = j * tm + ct.arange(tm, dtype=ct.int32)
    for p in range(kh):
        for q in ct.static_iter(range(kw)):
            for k in range(ct.num_tiles(w, 2, (1, 1, tk, tn))):
                channels = k * tk + ct.arange(tk, dtype=ct.int32)
                pixels = ct.gather(x, (image, row + p, (cols + q)[:, None], channels[None, :]))
                filters = ct.load(w, (p, q, k, f), (1, 1, tk, tn), padding_mode=ct.PaddingMode.ZERO)
                acc = ct.mma(pixels, filters.reshape((tk, tn)), acc)
    ct.store(y, (image, row, j, f), acc.reshape((1, 1, tm, tn)).astype(y.dtype))


@ct.kernel
def conv2d_depthwise(x, w, y, kh: ct.Constant[int], kw: ct.Constant[int], tm: ct.Constant[int],
                     tn: ct.Constant[int]):
    """x: (planes, height, width), w: (planes, kh, kw), unit stride, padded to the same size."""
    plane, i, j = ct.bid(0), ct.bid(1), ct.bid(2)
    rows = i * tm + ct.arange(tm, dtype=ct.int32)[:, None]
    cols = j * tn + ct.arange(tn, dtype=ct.int32)[None, :]
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for p in ct.static_iter(range(kh)):
        for q in ct.static_iter(range(kw)):
            values = ct.gather(x, (plane, rows + (p - kh // 2), cols + (q - kw // 2)))
            acc += values * ct.gather(w, (plane, p, q))
    ct.store(y, (plane, i, j), acc.reshape((1, tm, tn)))


def conv(x, w, stride, pad):
    """NHWC and (kh, kw, channels, filters), in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("bhwcpq,pqcf->bhwf", windows, w.astype(np.float64))


def main():
    rng = np.random.default_rng(14)
    stream = cp.cuda.get_current_stream()
    for batch, h, width, c, f, kh, kw, stride, pad in ((2, 8, 8, 16, 32, 3, 3, 1, 1), (1, 9, 11, 3, 10, 3, 5, 2, 2),
                                                     (3, 5, 6, 7, 33, 1, 1, 1, 0)):
        for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 1e-2)):
            x = rng.standard_normal((batch, h, width, c)).astype(dtype)
            w = rng.standard_normal((kh, kw, c, f)).astype(dtype)
            want = conv(x, w, stride, pad)
            h_out, w_out = want.shape[1:3]
            y = cp.zeros((batch * h_out * w_out, f), dtype=dtype)
            ct.launch(stream, (ct.cdiv(batch * h_out * w_out, 32), ct.cdiv(f, 32)), conv2d_gather,
                      (cp.asarray(x), cp.asarray(w.reshape(-1, f)), y, h_out, w_out, kh, kw, stride, pad, 32, 32, 16))
            np.testing.assert_allclose(cp.asnumpy(y).reshape(want.shape), want, rtol=0,
                                       atol=tolerance * np.abs(want).max())
            want = conv(x, w, 1, 0)
            y = cp.zeros(want.shape, dtype=dtype)
            ct.launch(stream, (batch * want.shape[1], ct.cdiv(want.shape[2], 8), ct.cdiv(f, 16)), conv2d_taps,
                      (cp.asarray(x), cp.asarray(w), y, kh, kw, 8, 16, 16))
            np.testing.assert_allclose(cp.asnumpy(y), want, rtol=0, atol=tolerance * np.abs(want).max())
    for planes, h, width in ((3, 16, 16), (2, 13, 30)):
        x = rng.standard_normal((planes, h, width)).astype(np.float32)
        w = rng.standard_normal((planes, 3, 5)).astype(np.float32)
        y = cp.zeros((planes, h, width), dtype=np.float32)
        ct.launch(stream, (planes, ct.cdiv(h, 8), ct.cdiv(width, 16)), conv2d_depthwise,
                  (cp.asarray(x), cp.asarray(w), y, 3, 5, 8, 16))
        padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (2, 2)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 5), axis=(1, 2))
        np.testing.assert_allclose(cp.asnumpy(y), np.einsum("chwpq,cpq->chw", windows, w), rtol=0, atol=2e-5)


if __name__ == "__main__":
    main()
