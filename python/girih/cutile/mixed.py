"""`torch.autocast("cuda")` on a pretended device, whose tensors lie in the host's memory.

PyTorch casts operands by rules of the device that they lie on, here the host. Most rules are those of CUDA. Where the host has none,

* functions that lose digits (softmax, norms, exponentials, sums) take float32 and give it;
* products with a vector take the narrow type;
* functions of several tensors take the widest of their types.

The rules are kernels of PyTorch's dispatcher, so they also hold inside PyTorch's functions. They are added when a program first enters
such a region. Programs that ask whether CUDA's autocast is on get a GPU's answer.
"""

import functools

# Operators of the first kind; those that sum come last.
_WIDE = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus"
    " layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity"
    " poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss"
    " margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits"
    " dist pdist cdist renorm logsumexp upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d"
    " upsample_trilinear3d upsample_bicubic2d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d"
    " _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
    " prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord sum"
    " sum.dim_IntList norm.Scalar norm.ScalarOpt_dim"
)
_NARROW = "addmv addr mv prelu chain_matmul linalg_multi_dot lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"


def adopt(torch, marked, asked):
    """Makes `torch.autocast` follow CUDA's rules on tensors for which `marked` is true, and inside a call of PyTorch's interface that runs
    on the device, as `asked()` tells."""
    autocast = torch.amp.autocast_mode.autocast
    real_enter, real_exit = autocast.__enter__, autocast.__exit__
    rules = []

    @functools.wraps(real_enter)
    def enter(context):
        entered = real_enter(context)
        if context.device == "cuda":
            if not rules:
                rules.append(_rules(torch, lambda values: asked() or any(map(marked, values))))
            # The host's kernels cast what lies in its memory.
            context._girih_host = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
            torch.set_autocast_enabled("cpu", context._enabled)
            torch.set_autocast_dtype("cpu", context.fast_dtype)
        return entered

    @functools.wraps(real_exit)
    def leave(context, *raised):
        if context.device == "cuda":
            on, dtype = context._girih_host
            torch.set_autocast_enabled("cpu", on)
            torch.set_autocast_dtype("cpu", dtype)
        return real_exit(context, *raised)

    autocast.__enter__, autocast.__exit__ = enter, leave


def _rules(torch, on_device):
    """The library whose kernels cast operands where the host's autocast does not."""
    eligible = (torch.float32, torch.float16, torch.bfloat16)

    def each(change, value):
        if isinstance(value, torch.Tensor):
            return change(value) if value.dtype in eligible else value
        return type(value)(each(change, v) for v in value) if isinstance(value, (list, tuple)) else value

    def types(values):
        for value in values:
            if isinstance(value, torch.Tensor) and value.dtype in eligible:
                yield value.dtype
            elif isinstance(value, (list, tuple)):
                yield from types(value)

    def widest(values):
        found = set(types(values))
        narrow = torch.get_autocast_dtype("cpu")
        return narrow if found <= {narrow} else torch.float32

    choices = ((_WIDE, lambda values: torch.float32), (_NARROW, lambda values: torch.get_autocast_dtype("cpu")), (_WIDEST, widest))
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    without = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    for names, choose in choices:
        for name in names.split():
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            # Only what this version of PyTorch casts on CUDA.
            casts = operator and functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, operator.name())
            if casts and casts("AutocastCUDA") and not casts("AutocastCPU"):
                library.impl(name, _casting(torch, operator, choose, each, on_device, without))
    return library


def _casting(torch, operator, choose, each, on_device, without):
    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(without):
            values = (*args, *kwargs.values())
            if torch.is_autocast_enabled("cuda") and on_device(values):
                dtype = choose(values)
                args = each(lambda t: t.to(dtype), args)
                kwargs = {name: each(lambda t: t.to(dtype), value) for name, value in kwargs.items()}
            return operator(*args, **kwargs)

    return run
