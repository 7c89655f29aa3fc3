"""Fourier transform of rows of length 2^p in one kernel: radix-2 steps on a tile that holds a whole row, real and
imaginary parts as two arrays, twiddle factors from a table that the host made. A second kernel splits the length in two
factors and does both as matrix products, as GPUs like it."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def fft_radix2(re, im, w_re, w_im, out_re, out_im, rows: ct.Constant[int], n: ct.Constant[int],
               stages: ct.Constant[int], inverse: ct.Constant[bool]):
    """Stockham's arrangement: after every step the results stand in order, no bit reversal."""
    i = ct.bid(0)
    x = ct.load(re, (i, 0), (rows, n), padding_mode=ct.PaddingMode.ZERO)
    y = ct.load(im, (i, 0), (rows, n), padding_mode=ct.PaddingMode.ZERO)
    for s in ct.static_iter(range(stages)):
        # [half the length left][length so far]: element (j, k) meets element (j + half, k).
        done = 2**s
        left = n // (2 * done)
        x = ct.reshape(x, (rows, 2, left, done))
        y = ct.reshape(y, (rows, 2, left, done))
        a_re = ct.extract(x, (0, 0, 0, 0), (rows, 1, left, done)).reshape((rows, left, done))
        b_re = ct.extract(x, (0, 1, 0, 0), (rows, 1, left, done)).reshape((rows, left, done))
        a_im = ct.extract(y, (0, 0, 0, 0), (rows, 1, left, done)).reshape((rows, left, done))
        b_im = ct.extract(y, (0, 1, 0, 0), (rows, 1, left, done)).reshape((rows, left, done))
        angle = ct.arange(left, dtype=ct.int32) * done
        c = ct.gather(w_re, angle).reshape((1, left, 1))
        d = ct.gather(w_im, angle).reshape((1, left, 1))
        if inverse:
            d = -d
        dif_re, dif_im = a_re - b_re, a_im - b_im
        turned_re = dif_re * c - dif_im * d
        turned_im = dif_re * d + dif_im * c
        # Results of this step: (left, 2, done), so that the next one sees twice the length done.
        x = ct.cat(((a_re + b_re).reshape((rows, left, 1, done)), turned_re.reshape((rows, left, 1, done))), 2)
        y = ct.cat(((a_im + b_im).reshape((rows, left, 1, done)), turned_im.reshape((rows, left, 1, done))), 2)
    scale = 1.0 / n if inverse else 1.0
    ct.store(out_re, (i, 0), x.reshape((rows, n)) * scale)
    ct.store(out_im, (i, 0), y.reshape((rows, n)) * scale)


def complex_mma(a_re, a_im, b_re, b_im, m, n):
    zero = ct.zeros((m, n), dtype=ct.float32)
    re = ct.mma(-a_im, b_im, ct.mma(a_re, b_re, zero))
    im = ct.mma(a_im, b_re, ct.mma(a_re, b_im, zero))
    return re, im


@ct.kernel
def fft_two_factors(re, im, f1_re, f1_im, f2_re, f2_im, t_re, t_im, out_re, out_im, n1: ct.Constant[int],
                    n2: ct.Constant[int]):
    """n = n1 n2: transform the columns, turn by the twiddle factors, transform the rows, store transposed."""
    row = ct.bid(0)
    x = ct.load(re, (row, 0), (1, n1 * n2)).reshape((n1, n2))
    y = ct.load(im, (row, 0), (1, n1 * n2)).reshape((n1, n2))
    a, b = complex_mma(ct.load(f1_re, (0, 0), (n1, n1)), ct.load(f1_im, (0, 0), (n1, n1)), x, y, n1, n2)
    c, d = ct.load(t_re, (0, 0), (n1, n2)), ct.load(t_im, (0, 0), (n1, n2))
    a, b = a * c - b * d, a * d + b * c
    a, b = complex_mma(a, b, ct.load(f2_re, (0, 0), (n2, n2)), ct.load(f2_im, (0, 0), (n2, n2)), n1, n2)
    ct.store(out_re, (row, 0), a.transpose().reshape((1, n1 * n2)))
    ct.store(out_im, (row, 0), b.transpose().reshape((1, n1 * n2)))


def halves(z):
    return cp.asarray(z.real.astype(np.float32)), cp.asarray(z.imag.astype(np.float32))


def roots(rows, cols, n):
    return np.exp(-2j * np.pi * np.outer(np.arange(rows), np.arange(cols)) / n)


def main():
    rng = np.random.default_rng(12)
    stream = cp.cuda.get_current_stream()
    for batch, n in ((4, 8), (3, 64), (5, 512)):
        z = rng.standard_normal((batch, n)) + 1j * rng.standard_normal((batch, n))
        z = z.astype(np.complex64)
        stages = n.bit_length() - 1
        table = halves(np.exp(-2j * np.pi * np.arange(n // 2) / n))
        for inverse in (False, True):
            out = cp.zeros((batch, n), dtype=np.float32), cp.zeros((batch, n), dtype=np.float32)
            ct.launch(stream, (ct.cdiv(batch, 2),), fft_radix2,
                      (*halves(z), *table, *out, 2, n, stages, inverse))
            want = np.fft.ifft(z, axis=1) if inverse else np.fft.fft(z, axis=1)
            got = cp.asnumpy(out[0]) + 1j * cp.asnumpy(out[1])
            assert np.abs(got - want).max() <= 4e-7 * stages * np.abs(want).max()
    for batch, n1, n2 in ((2, 16, 16), (3, 8, 32)):
        n = n1 * n2
        z = (rng.standard_normal((batch, n)) + 1j * rng.standard_normal((batch, n))).astype(np.complex64)
        out = cp.zeros((batch, n), dtype=np.float32), cp.zeros((batch, n), dtype=np.float32)
        ct.launch(stream, (batch,), fft_two_factors,
                  (*halves(z), *halves(roots(n1, n1, n1)), *halves(roots(n2, n2, n2)), *halves(roots(n1, n2, n)),
                   *out, n1, n2))
        want = np.fft.fft(z, axis=1)
        assert np.abs(cp.asnumpy(out[0]) + 1j * cp.asnumpy(out[1]) - want).max() <= 4e-6 * np.abs(want).max()


if __name__ == "__main__":
    main()
