"""Casts between f16, bf16, tf32, f32 and f64 in each rounding mode the pair has."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct

RN, RZ, RM, RP = ct.RoundingMode.RN, ct.RoundingMode.RZ, ct.RoundingMode.RM, ct.RoundingMode.RP
RA = ct.RoundingMode.RA

# Significant bits, smallest normal exponent, largest finite value.
F16 = (11, -14, 65504.0)
BF16 = (8, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max))
TF32 = (11, -126, (2 - 2.0**-10) * 2.0**127)
F32 = (24, -126, float(np.finfo(np.float32).max))


def rounded(x, form, mode):
    """f64 values rounded to a format: exact scaling, then an integral rounding."""
    bits, smallest, largest = form
    _, exponent = np.frexp(x)
    step = np.exp2(np.maximum(exponent - 1, smallest) - (bits - 1))
    scaled = x / step
    away = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    whole = {RN: np.rint, RZ: np.trunc, RM: np.floor, RP: np.ceil, RA: lambda _: away}[mode](scaled)
    result = np.where(np.isfinite(x), whole * step, x)
    beyond = np.isfinite(x) & (np.abs(result) > largest)
    to_infinity = {RN: beyond, RA: beyond, RZ: False, RM: beyond & (x < 0), RP: beyond & (x > 0)}[mode]
    edge = np.where(to_infinity, np.inf, largest)
    return np.where(beyond, np.copysign(edge, x), result)


def caster(meaning, target, mode):
    """Widen to f64 at the end, so that every result is seen exactly."""

    @ct.kernel
    def kernel(x, result, n: ct.Constant[int]):
        a = ct.load(x, (0,), (n,))
        if meaning is not None:
            a = ct.bitcast(a, meaning)
        narrow = ct.astype(a, target, rounding_mode=mode)
        ct.store(result, (0,), ct.astype(narrow, ct.float64))

    return kernel


CASES = [
    (np.float64, np.float64, None, ct.float32, F32, (RN, RZ, RM, RP)),
    (np.float64, np.float64, None, ct.float16, F16, (RN, RZ)),
    (np.float64, np.float64, None, ct.bfloat16, BF16, (RN, RZ)),
    (np.float32, np.float32, None, ct.float16, F16, (RN, RZ)),
    (np.float32, np.float32, None, ct.bfloat16, BF16, (RN, RZ)),
    (np.float32, np.float32, None, ct.tfloat32, TF32, (RN, RZ, RA)),
    (np.float16, np.float16, None, ct.bfloat16, BF16, (RN, RZ)),
    (np.float16, np.float16, None, ct.float32, F32, (RN,)),
    (ml_dtypes.bfloat16, np.uint16, ct.bfloat16, ct.float16, F16, (RN, RZ)),
    (ml_dtypes.bfloat16, np.uint16, ct.bfloat16, ct.float32, F32, (RN,)),
]


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(20)
    values = np.concatenate([
        rng.standard_normal(96),
        rng.standard_normal(96) * 10.0 ** rng.integers(-9, 9, 96),
        rng.integers(-5000, 5000, 32) / 2.0**11,  # halfway between two f16 or tf32
        [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65519.0, 65520.0, -65520.0, 1e5, -1e5, 1e39, -1e39,
         3.4e38, -3.4e38, 2.0**-24, 2.0**-25, -(2.0**-25), 3 * 2.0**-26, 2.0**-14, 1 + 2.0**-8, 1 + 2.0**-9,
         1 + 2.0**-11, 1 + 2.0**-24, 1 + 3 * 2.0**-24, -1 - 2.0**-11, 2.0**-126, 6e-8, 2049.0, 2051.0, 257.0,
         259.0],
    ])
    np.seterr(all="ignore")
    for source, storage, meaning, target, form, modes in CASES:
        x = values.astype(source)
        exact = x.astype(np.float64)
        for mode in modes:
            result = cp.zeros(256, dtype=np.float64)
            ct.launch(stream, (1,), caster(meaning, target, mode), (cp.asarray(x.view(storage)), result, 256))
            got, want = cp.asnumpy(result), rounded(exact, form, mode)
            label = f"{source.__name__} to {target}, {mode}"
            np.testing.assert_array_equal(got, want, err_msg=label)
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number], err_msg=label)


if __name__ == "__main__":
    main()
