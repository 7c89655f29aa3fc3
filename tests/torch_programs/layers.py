"""Layers of functions under function transforms, as source: from `x [2, 4]` to `[2, 4]`, of float64.

They are smooth where it matters: operations that choose (maxima, sorting) add `S` to their input first, so that equal elements of
earlier layers (copies of a row) do not tie. `lgamma` is missing: PyTorch's second derivative has ten correct digits. The names that layers use beside PyTorch's are made by `constants`.
"""

from __future__ import annotations

import torch

__all__ = ["COLUMNS", "CORE", "LAYERS", "ROWS", "constants"]

ROWS, COLUMNS = 2, 4


def constants():
    """Names that layers use: tensors and modules of float64, and indices."""
    made = torch.Generator().manual_seed(5)

    def normal(*size):
        return torch.randn(size, generator=made, dtype=torch.float64) / 2

    module = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 3), torch.nn.Tanh(), torch.nn.Linear(3, COLUMNS)).double()
    norm = torch.nn.LayerNorm(COLUMNS).double()
    tensors = {
        "W": normal(COLUMNS, COLUMNS), "B": normal(COLUMNS), "K": normal(2, 1, 3), "K2": normal(1, 1, 2, 2),
        "T": normal(1, 1, 2, 2), "S": normal(ROWS, COLUMNS),
    }  # fmt: skip
    recurrent, attention = torch.nn.GRU(COLUMNS, COLUMNS).double(), torch.nn.MultiheadAttention(COLUMNS, 2).double()
    with torch.no_grad():
        for p in (*module.parameters(), *norm.parameters(), *recurrent.parameters(), *attention.parameters()):
            p.copy_(normal(*p.shape) + 0.3)
    return {
        **tensors, "M": module, "N": norm, "R": recurrent, "A": attention, "P": torch.tensor([2, 0, 3, 0]), "J": torch.tensor([1, 1]),
        "G": torch.tensor([[3, 0, 0, 2], [1, 1, 2, 0]]), "GRID": normal(1, ROWS, COLUMNS, 2),
    }  # fmt: skip


#: Layers whose traces leave no damage behind in a process that goes on.
CORE = (
    "F.linear({x}, W, B)", "F.linear({x}, W)", "{x} @ W", "({x} @ W.t()) @ W", "W[:2, :2] @ {x}", "F.softmax({x}, -1)",
    "F.softmax({x}, 0)", "F.log_softmax({x}, -1)", "F.layer_norm({x}, (4,), B, B)", "F.layer_norm({x}, (2, 4))",
    "F.rms_norm({x}, (4,))", "F.group_norm({x}, 2)", "F.cosine_similarity({x}, S, -1)[:, None] * {x}",
    "F.scaled_dot_product_attention({x}[None], S[None], {x}[None])[0]",
    "F.scaled_dot_product_attention({x}[None], {x}[None], {x}[None], is_causal=True)[0]",
    "F.conv1d({x}[:, None], K, padding=1).sum(1)", "F.conv2d({x}[None, None], K2, padding=1)[0, 0, :2, :4]",
    "F.conv_transpose2d({x}[None, None], T)[0, 0, 1:, 1:]", "F.avg_pool1d({x}, 3, 1, 1)", "F.adaptive_avg_pool1d({x}, 4)",
    "F.upsample({x}[None], scale_factor=2, mode='nearest')[0, :, ::2]", "F.interpolate({x}[None, None], size=(2, 4), mode='bilinear')[0, 0]",
    "M({x})", "N({x})", "func.functional_call(M, {{k: p * 0.5 for k, p in M.named_parameters()}}, ({x},))",
    "F.cross_entropy({x}, torch.tensor([1, 3])) * {x}", "torch.einsum('ij,jk->ik', {x}, W)", "F.gelu({x})", "torch.tanh({x})",
    "{x}.sin()", "{x} * S", "{x} + {x}.mean()", "F.silu({x})", "{x}.t().contiguous().t()", "torch.cat([{x}[:, 2:], {x}[:, :2]], 1)",
    "torch.where({x} > 0, {x}, {x}.exp())", "{x}.cumsum(1)", "F.normalize({x}, dim=-1)", "{x}.logsumexp(0, keepdim=True) + {x}",
)  # fmt: skip

LINEAR = (
    "torch.einsum('ij,kj,kl->il', {x}, {x}, S)", "torch.einsum('ij->ji', {x}).t()", "torch.einsum('ii,ij->ij', W[:2, :2], {x})",
    "torch.bmm({x}[None], W[None])[0]", "torch.baddbmm(S[None], {x}[None], W[None], beta=0.5, alpha=2)[0]",
    "torch.addmm({x}, {x}, W, beta=2, alpha=0.5)", "torch.addbmm(S, {x}[None], W[None])", "{x} + torch.mv({x}, B)[:, None]",
    "torch.addmv({x}[:, 0], {x}, B)[:, None] * S", "torch.outer({x}[:, 0], {x}[1])", "torch.addr(S, {x}[:, 1], {x}[0])",
    "{x} * torch.dot({x}[0], {x}[1])", "torch.tensordot({x}, W, 1)", "torch.kron({x}[:1, :2], S[:, :2])",
    "torch.linalg.multi_dot([{x}, W, W])", "torch.chain_matmul({x}, W)", "F.bilinear({x}, S, W[:, None].expand(4, 4, 4) * 0.3)",
    "torch.matrix_exp(W[:2, :2] * 0.3) @ {x}", "{x} @ torch.matrix_power(W, 3)", "torch.cdist({x}, S) @ {x}",
)  # fmt: skip

NORMS = (
    "F.softmin({x}, 1)",
    "F.rms_norm({x}, (4,), B)",
    "F.group_norm({x}[None], 1, B[:2], B[2:])[0]", "F.instance_norm({x}[None])[0]", "F.instance_norm({x}[None], weight=B[:2], bias=B[2:])[0]",
    "F.batch_norm({x}, B, B.abs() + 1, B, B)", "F.batch_norm({x}, None, None, B, B, training=True)",
    "F.normalize({x}, p=3.0, dim=0)", "F.local_response_norm({x}[None], 2)[0]",
    "F.pairwise_distance({x}, S)[:, None] * {x}", "{x} / (1 + {x}.norm())",
    "{x} * torch.linalg.vector_norm({x}, 3, dim=1, keepdim=True)", "{x} * torch.linalg.matrix_norm({x})", "{x} - {x}.std(1, keepdim=True)",
    "{x} * {x}.var(0)", "{x} + {x}.var(1, correction=0, keepdim=True)", "sum(torch.var_mean({x}, 0)) + {x}",
    "{x} * {x}.prod(1, keepdim=True)", "{x} + {x}.prod()", "{x}.cumprod(1)", "{x}.cumsum(0)",
    "{x}.logcumsumexp(1)", "torch.renorm({x}, 2, 0, 0.9)", "torch.cov({x}) @ {x}", "torch.trapezoid({x}, dim=1)[:, None] + {x}",
    "F.pad(torch.cumulative_trapezoid({x}, dim=1), (0, 1))", "{x} - {x}.nanmean(1, keepdim=True)", "{x} + {x}.square().nansum(0)",
)  # fmt: skip

SPATIAL = (
    "F.conv1d({x}[None], K, padding=2, dilation=2, groups=2)[0]",
    "F.conv2d({x}[None, None], K2, padding='same')[0, 0]",
    "F.conv3d({x}[None, None, None], K2[None], padding=(0, 1, 1))[0, 0, 0, :2, :4]",
    "F.conv_transpose1d({x}[None], K, stride=2, groups=2)[0][:, 1:8:2]", "F.conv_transpose2d({x}[None, None], T, stride=2)[0, 0, ::2, 1::2]",
    "F.avg_pool2d({x}[None], 2, 1, 1, count_include_pad=False)[0, :2, :4]",
    "F.adaptive_avg_pool2d({x}[None], (1, 4))[0] * {x}", "F.max_pool1d({x} + S, 2, 1, 1)[:, :4]", "F.max_pool2d(({x} + S)[None], 2, 1, 1)[0, 1:, 1:]",
    "F.adaptive_max_pool1d({x} + S, 2).repeat(1, 2)", "F.lp_pool1d({x} + 2, 2, 2, 1).sum(1, keepdim=True) + {x}",
    "F.interpolate({x}[None], size=7, mode='linear', align_corners=True)[0, :, ::2]",
    "F.interpolate({x}[None, None], size=(4, 4), mode='bicubic')[0, 0, ::2]", "F.interpolate({x}[None, None], size=(3, 8), mode='area')[0, 0, 1:, ::2]",
    "F.grid_sample({x}[None, None], GRID, align_corners=False)[0, 0]", "F.grid_sample({x}[None, None], GRID, padding_mode='border', align_corners=True)[0, 0]",
    "F.pixel_shuffle({x}.reshape(1, 4, 1, 2), 2).reshape(2, 4)", "F.pixel_unshuffle({x}[None, None], 2).reshape(2, 4)",
    "F.channel_shuffle({x}.reshape(1, 4, 1, 2), 2).reshape(2, 4)", "F.unfold({x}[None, None], 2, padding=1)[0].sum(0).reshape(3, 5)[:2, :4]",
    "F.fold({x}.reshape(1, 4, 2), (2, 3), 2).reshape(6)[:4] + {x}",
)  # fmt: skip

MODELS = (
    "F.scaled_dot_product_attention({x}[None], {x}[None], S[None], attn_mask=W[None, :2, :2], scale=0.7)[0]",
    "R({x}[:, None])[0][:, 0]", "A({x}, {x}, S, need_weights=False)[0]", "F.dropout({x}, 0.0)", "F.dropout({x}, 0.5, training=False)",
    "F.cross_entropy({x}, F.softmax(S, 1), label_smoothing=0.1) + {x}",
    "F.nll_loss(F.log_softmax({x}, 1), J, B.abs()) * {x}", "F.mse_loss({x}, S) * {x}", "F.l1_loss({x}, S) * {x}", "F.smooth_l1_loss({x}, S, beta=0.3) + {x}",
    "F.huber_loss({x}, S, reduction='none')", "F.binary_cross_entropy_with_logits({x}, torch.sigmoid(S), pos_weight=B.abs(), reduction='none')",
    "F.binary_cross_entropy(torch.sigmoid({x}), torch.sigmoid(S)) + {x}", "F.kl_div(F.log_softmax({x}, 1), F.softmax(S, 1), reduction='batchmean') + {x}",
    "F.gaussian_nll_loss({x}, S, S.square() + 0.1) * {x}", "F.poisson_nll_loss({x}, S.abs()) + {x}", "F.soft_margin_loss({x}, S.sign()) * {x}",
    "F.hinge_embedding_loss({x}, S.sign()) + {x}", "F.cosine_embedding_loss({x}, S, B[:2].sign()) + {x}", "F.triplet_margin_loss({x}, S, {x} @ W) + {x}",
    "F.multi_margin_loss({x}, J) * {x}", "F.embedding(J, {x})", "F.embedding(G, W).sum(2) * {x}", "F.embedding_bag(G, W, mode='mean') * {x}",
)  # fmt: skip

POINTS = (
    "F.gelu({x}, approximate='tanh')", "F.softplus({x})", "F.softplus({x}, 3, 1)",
    "F.mish({x})", "F.hardswish({x} * 3)", "F.hardsigmoid({x} * 3)", "F.prelu({x}, B[:1])", "F.prelu({x}, B)", "F.celu({x}, 0.7)", "F.elu({x}, 1.3)",
    "F.selu({x})", "F.logsigmoid({x})", "F.tanhshrink({x})", "F.softsign({x})", "F.softshrink({x}, 0.2)", "F.hardshrink({x}, 0.2)",
    "F.hardtanh({x}, -0.6, 0.8)", "F.leaky_relu({x}, 0.2)", "F.relu6({x} * 6)", "F.relu({x})", "F.rrelu({x}, 0.1, 0.3)", "F.threshold({x}, 0.1, 0.3)",
    "F.glu(torch.cat([{x}, S], 1), 1)", "{x}.erf()", "(0.9 * {x}.tanh()).erfinv()", "torch.atan2({x}, S)", "torch.hypot({x}, S)",
    "torch.lerp({x}, S, 0.3)", "torch.lerp(S, {x}, S.abs())", "torch.addcmul({x}, {x}, S, value=0.5)", "torch.addcdiv({x}, S, {x}.square() + 1)",
    "torch.xlogy(S, {x}.square() + 0.1)", "torch.sinc({x} + 0.1)", "{x}.expm1()", "{x}.square().log1p()", "{x}.sigmoid()", "(0.8 * {x}.sigmoid() + 0.1).logit()",
    "{x}.square().add(1).rsqrt()", "({x}.abs() + 0.3).pow(1.7)", "{x}.pow(3)",
    "torch.pow(1.5, {x})", "1 / ({x}.square() + 1)", "{x}.clamp(-0.6, 0.9)", "{x}.clamp(S, S + 0.4)", "{x}.remainder(0.7)", "{x}.fmod(0.7)",
    "{x}.frac()", "{x}.abs()", "{x} * {x}.sgn()", "torch.copysign({x}, S)", "torch.maximum({x}, S)", "torch.fmin({x}, S)", "{x}.asinh()", "{x}.atan()",
    "{x}.cosh()", "{x}.exp2()", "torch.logaddexp({x}, S)", "torch.logaddexp2({x}, S)", "{x}.square().add(0.2).sqrt()", "torch.special.entr({x}.square())",
    "torch.special.i0({x})", "torch.special.i1({x})", "torch.special.log_ndtr({x})", "torch.special.ndtr({x})", "torch.special.erfcx({x})",
    "{x}.nan_to_num()", "{x}.deg2rad() + {x}", "{x}.masked_fill(S > 0, 0.5)", "{x}.float().double()",
    "{x} // 0.4 + {x}", "{x}.floor() * {x}", "-{x}", "1 - {x}", "{x}.positive() + S", "torch.heaviside({x}, S) * {x}", "{x}.true_divide(S.abs() + 1)",
    "torch.complex({x}, S).abs()", "torch.fft.irfft(torch.fft.rfft({x}) * 0.5, 4)", "torch.fft.fft({x}).real", "torch.view_as_real(torch.complex({x}, S) ** 2).sum(2)",
)  # fmt: skip

MOVES = (
    "{x}.index_select(1, P)", "{x}.index_select(0, J)", "{x}[J]", "{x}[:, P]",
    "{x}[J[:, None], P]", "{x}.gather(1, G)", "{x}.gather(0, G % 2)", "torch.take_along_dim({x}, G, 1)", "{x}.take(G)", "{x}.scatter(1, P[None], S)",
    "{x}.scatter_add(1, G, S)", "{x}.scatter_reduce(1, G, S, 'amax')", "S.scatter_add(1, G, {x})", "S.scatter_reduce(0, G % 2, {x}, 'mean')",
    "{x}.index_add(0, J, S, alpha=2)", "S.index_add(0, J, {x})", "{x}.index_put((J,), S, accumulate=True)", "S.index_put((J.flip(0) * 0 + torch.arange(2),), {x})",
    "{x}.index_copy(0, J[:1], S[:1])", "{x}.index_fill(1, P[:2], 0.3)", "{x}.masked_scatter(S > 0, W)", "F.pad({x}, (1, 1))[:, 1:5]",
    "F.pad({x}, (1, -1), value=0.3)", "F.pad({x}[None], (1, 2), mode='reflect')[0, :, 2:6]", "F.pad({x}[None], (2, 1), mode='replicate')[0, :, :4]",
    "F.pad({x}[None], (1, 3), mode='circular')[0, :, 3:7]", "{x}.roll(1, 0)", "{x}.roll((1, -1), (0, 1))", "{x}.flip(1)", "{x}.flip((0, 1))", "{x}.fliplr()",
    "{x}.rot90(2)", "{x}.tril()", "{x}.triu(1) + S", "torch.diag({x}[0])[:2]", "{x} * torch.diag(W @ {x}.t() @ {x})", "{x}.diagonal().expand(4, 2).t()",
    "torch.diag_embed({x})[:, 1] + {x}", "torch.diagflat({x}[0])[1:3]", "{x} * {x}.trace()", "{x}.movedim(0, 1).reshape(2, 4)", "{x}.unfold(1, 2, 1).sum(1).repeat(1, 2)",
    "{x}.repeat(2, 1)[1:3]", "{x}.repeat_interleave(2, 1)[:, 1:5]", "{x}.tile(1, 2)[:, 2:6]", "torch.stack([{x}, S], 1).sum(1)", "sum({x}.chunk(2, 1)).repeat(1, 2)",
    "torch.cat({x}.split([3, 1], 1)[::-1], 1)", "torch.stack({x}.unbind(1), 1)", "{x}.narrow(1, 1, 2).repeat(1, 2)", "{x}.select_scatter({x}[0].sin(), 0, 1)",
    "{x}.slice_scatter(S[:, :2], 1, 1, 3)", "{x}.diagonal_scatter(B[:2])", "{x}[:1].expand(2, 4)", "{x}.squeeze().unsqueeze(0).squeeze(0)", "{x}.as_strided((2, 4), (4, 1))",
    "{x}.view(4, 2).t().reshape(2, 4)", "{x}.unflatten(1, (2, 2)).flatten(1)", "{x}.swapaxes(0, 1).reshape(2, 4)", "torch.hstack([{x}[:, :1], {x}[:, 1:]])",
    "({x} * 1.5 + S).sort(1).values", "({x} * 1.5 + S).sort(0, descending=True)[0]", "({x} * 1.5 + S).topk(2, 1).values.repeat(1, 2)", "({x} * 1.5 + S).kthvalue(2, 1, keepdim=True)[0] * {x}",
    "({x} * 1.5 + S).median(1, keepdim=True)[0] + {x}", "({x} + S).amax(1, keepdim=True) * {x}", "({x} * 1.5 + S).max(0)[0] + {x}", "({x} + S).min() * {x}",
    "({x} * 1.5 + S).cummax(1)[0]", "({x} + S).cummin(0).values", "{x}.quantile(0.3) + {x}", "{x}.diff(dim=1, prepend=S[:, :1])", "{x}.clone().mul_(2).add_(S)",
    "torch.block_diag({x}[:, :2], {x}[:, 2:])[1:3]", "torch.cartesian_prod({x}[0, :2], {x}[1, :2])[:, 0] + {x}", "torch.combinations({x}[0], 2).sum(1)[:4] * S",
    "torch.cross({x}[:, :3], S[:, 1:], dim=1).repeat(1, 2)[:, :4]", "torch.vander({x}[0], 4)[:2]", "torch.broadcast_tensors({x}, B)[1] * {x}",
)  # fmt: skip

LAYERS = (*CORE, *LINEAR, *NORMS, *SPATIAL, *MODELS, *POINTS, *MOVES)
