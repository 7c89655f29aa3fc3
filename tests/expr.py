"""One-line expressions against PyTorch: the same text is run by PyTorch and by girih, on the same inputs and weights.

    python tests/expr.py target/release/girih [--filter TEXT] [--device eval|cpu]

Every name that `girih compile -c help` lists must occur in a case. Results are compared with PyTorch's in float64 within
eps * (16 + 4 * sqrt(K)) of the largest element, K the largest extent of an input; integers and bools must be equal.
Inputs and weights are drawn from a generator seeded by their names and shapes, so both sides have the same.
"""

import argparse
import ast
import math
import os
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CASES = []


def case(*texts):
    CASES.extend(texts)


def each(names, arguments="", setup="x=torch.randn(3,5)*2", torch_too=True):
    """`torch.NAME(x, ...)` and `x.NAME(...)`."""
    for name in names.split():
        rest = f", {arguments}" if arguments else ""
        both = f"torch.{name}(x{rest}), x.{name}({arguments})" if torch_too else f"x.{name}({arguments})"
        case(f"{setup}; {both}")


# The article's.
case("torch.nn.RMSNorm(64)(torch.randn(1,32,64))",
     "x=torch.randn(8,37);0.5*x*(1+torch.tanh(0.797*(x+0.044*x*x*x)))",
     "torch.nn.Linear(48,24)(torch.randn(16,48))",
     "torch.nn.Linear(48,24,bias=False)(torch.randn(16,48))")

# Arithmetic.
each("abs absolute neg negative sign sgn exp exp2 expm1 sin cos tan sinh cosh tanh erf floor ceil round trunc frac square "
     "reciprocal atan sigmoid relu isnan isinf isfinite logical_not")
each("log log2 log10 log1p sqrt rsqrt", setup="x=torch.rand(3,5)+0.1")
each("asin acos", setup="x=torch.rand(3,5)*1.8-0.9")
each("add sub subtract mul multiply div divide true_divide maximum minimum fmax fmin atan2 hypot logaddexp eq ne lt le gt "
     "ge greater less logical_and logical_or logical_xor", "y", "x=torch.randn(3,5); y=torch.randn(5)")
each("floor_divide remainder fmod", "y", "x=torch.randint(-20,20,(4,6)); y=torch.randint(1,7,(6,))")
each("pow", "2"), each("pow", "y", "x=torch.rand(3,5)+0.5; y=torch.randn(3,5)"), each("pow", "-0.5", "x=torch.rand(4)+0.5")
each("add sub", "y, alpha=2", "x=torch.randn(3,5); y=torch.randn(5)")
each("div", "y, rounding_mode='floor'", "x=torch.randn(3,5)*9; y=torch.rand(5)+0.5")
each("addcmul addcdiv", "y, z, value=0.5", "x=torch.randn(3,5); y=torch.randn(3,5); z=torch.rand(3,5)+0.5")
each("lerp", "y, 0.3", "x=torch.randn(3,5); y=torch.randn(3,5)")
each("bitwise_and bitwise_or bitwise_xor", "y", "x=torch.randint(0,99,(3,5)); y=torch.randint(0,99,(3,5))")
each("bitwise_not", "", "x=torch.randint(0,99,(3,5))")
each("clamp clip", "-0.5, 0.7"), each("clamp_min clamp_max", "0.1"), each("clamp", "min=0.2")
# Bounds beyond a type bound nothing; elements that an unsigned type cannot hold wrap where they are negative.
each("clamp", "min=-2", "x=torch.tensor([1,200],dtype=torch.uint8)"), each("clamp", "max=300", "x=torch.tensor([1,200],dtype=torch.uint8)")
each("clamp", "-300, 300", "x=torch.tensor([-128,127],dtype=torch.int8)"), each("clamp_max", "2**40", "x=torch.tensor([5,-7],dtype=torch.int32)")
each("masked_fill", "x > 1, -1", "x=torch.tensor([1,2],dtype=torch.uint8)")
case("x=torch.tensor([1,2],dtype=torch.uint8); torch.full_like(x,-1), torch.add(x,x,alpha=-1), torch.where(x>1,x,-1), x+300, x*300")
each("masked_fill", "x > 0, -1.5"), each("nan_to_num")
case("x=torch.randn(3,4);torch.where(x>0,x,0.5*x), x.where(x>0, -x), torch.where(x>0,1.0,0.0)",
     "x=torch.randn(3,4); x+1, 1+x, x-1, 1-x, 2*x, x/3, 1/x, -x, +x, x**2, 2**x, x//0.3, x%0.7",
     "x=torch.randint(0,50,(6,)); x+1, x*2.5, x/4, x//4, x%7, -x, x**2, x&3, x|8, x^5, ~x, x<<1, x>>1",
     "x=torch.randn(3,4); x==x, x!=0, x<0, x<=0, x>0.5, x>=0.5, (x>0)&(x<1), (x>0)|(x<-1), ~(x>0)",
     "x=torch.randn(3,4); torch.rsub(x, 2), torch.rsub(x, 2, alpha=3), abs(x), pow(x, 2), sum([x, x, x])")

# Reductions.
each("sum mean amax amin argmax argmin all any prod"), each("sum mean amax amin argmax argmin all any prod", "dim=1")
each("sum mean amax amin", "-1, keepdim=True"), each("sum mean amax amin", "(0, 2)", "x=torch.randn(2,3,4)")
each("max min"), each("max min", "1"), each("max min", "y", "x=torch.randn(3,4); y=torch.randn(3,4)")
each("var std"), each("var std", "1"), each("var std", "dim=1, unbiased=False"), each("var", "-1, correction=0, keepdim=True")
each("logsumexp", "dim=-1"), each("cumsum", "1"), each("cumprod", "dim=0"), each("norm"), each("norm", "dim=1"), each("norm", "p=1, dim=-1")
case("x=torch.randn(4,6); torch.var_mean(x, dim=1, unbiased=False)", "x=torch.randn(4,6); m = torch.max(x, 1); m.values, m.indices",
     "x=torch.randn(4,6).half(); x.sum(), x.mean(-1)", "x=torch.randint(0,9,(4,5)); x.sum(), x.sum(1), x.float().mean(), x.max()")

case("x=torch.randn(4,6); torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, dim=1), torch.linalg.vector_norm(x, 1, (0, 1), True)",
     "x=torch.randn(4,6); torch.linalg.vector_norm(x, float('inf'), dim=0), torch.linalg.vector_norm(x, ord=3, dim=-1, dtype=torch.float64)",
     "import torch.linalg as la; x=torch.randn(4,6).half(); la.vector_norm(x, dim=1)")

# Products.
each("matmul mm", "y", "x=torch.randn(4,7); y=torch.randn(7,3)")
each("bmm matmul", "y", "x=torch.randn(2,4,7); y=torch.randn(2,7,3)")
each("mv", "y", "x=torch.randn(4,7); y=torch.randn(7)"), each("dot inner outer", "y", "x=torch.randn(7); y=torch.randn(7)")
each("addmm", "y, z, beta=0.5, alpha=2", "x=torch.randn(3); y=torch.randn(4,5); z=torch.randn(5,3)")
each("addmv", "y, z", "x=torch.randn(4); y=torch.randn(4,5); z=torch.randn(5)")
each("baddbmm", "y, z", "x=torch.randn(2,4,3); y=torch.randn(2,4,5); z=torch.randn(2,5,3)")
case("a=torch.randn(2,3,4); b=torch.randn(4,5); torch.einsum('bij,jk->bik', a, b)", "a=torch.randn(5); b=torch.randn(6); torch.einsum('i,j->ij', a, b)",
     "torch.einsum('ii->i', torch.randn(4,4))", "a=torch.randn(2,3,4,8); b=torch.randn(2,3,5,8); torch.einsum('bhqd,bhkd->bhqk', a, b)",
     "a=torch.randn(3,4); a@a.T, a.T@a, a@torch.randn(4)", "a=torch.randn(3,4); torch.chain_matmul(a, a.T, a)")

# Shapes.
S = "x=torch.randn(2,3,4)"
for call in ("reshape(6,4)", "view(6,-1)", "view(2,12)", "flatten()", "flatten(1)", "unflatten(2,(2,2))", "unsqueeze(1)", "squeeze()", "transpose(0,1)", "swapaxes(1,2)",
             "permute(2,0,1)", "movedim(0,-1)", "repeat(2,1,3)", "tile((2,2))", "flip(0,2)", "roll(2,1)", "chunk(2,-1)", "unbind(1)",
             "narrow(2,1,2)", "select(1,2)", "diagonal(0,1,2)", "clone()", "contiguous()", "detach()", "ravel()", "repeat_interleave(2,dim=1)", "split(2,dim=1)", "split([1,3],-1)"):
    name = call.split("(")[0]
    case(f"{S}; x.{call}")
    if hasattr(torch, name) and name not in ("repeat", "clone", "detach", "contiguous"):
        arguments = call[len(name) + 1:-1]
        if name in ("reshape", "permute", "flip", "view"):
            arguments = f"({arguments})"
        if name != "view":
            case(f"{S}; torch.{name}(x{', ' + arguments if arguments else ''})")
case("x=torch.randn(3,1); x.expand(3,4), x.expand(-1,5), torch.broadcast_to(x,(2,3,4)), x.broadcast_to((3,2)), x.t(), torch.t(x), x.squeeze(1), torch.squeeze(x)",
     "x=torch.randn(2,3); torch.cat([x,x],1), torch.concat((x,x)), torch.concatenate([x,2*x]), torch.stack([x,x],1), torch.hstack([x,x]), torch.vstack([x,x])",
     "x=torch.randn(2,3); y=torch.randn(6); y.view_as(x), y.reshape_as(x), torch.randn(3).expand_as(x), x.T, x.mT, x.data, x.cpu(), x.cuda() if x.is_cuda else x, x.requires_grad_(False)",
     "x=torch.randn(10); x.unfold(0,4,2)", "a=torch.arange(3); b=torch.arange(4); torch.meshgrid(a,b,indexing='ij')", "a=torch.arange(3); b=torch.arange(4); torch.meshgrid(a,b,indexing='xy')",
     "x=torch.randn(4,5,6); x[0], x[:,1:3], x[...,::2], x[:,None,-1], x[-3:,-2:], x[[0,2]], x[1,2,3], x[:,torch.tensor([0,1,1])]",
     "x=torch.randn(4,5); i=torch.randint(0,4,(7,)); x[i], x[i,torch.zeros_like(i)], x[:, i]",
     "x=torch.zeros(4,5); x[1]=2.0; x[:,2]+=1; x[2:4,::2]=torch.randn(2,3); x*=2; x", "x=torch.randn(4,5).clone(); x[x>0]=0; x",
     "x=torch.randn(3,4)+0; x.add_(1).mul_(2); x.relu_(); x", "x=torch.randn(3)+0; y=torch.randn(3); x.copy_(y); x",
     "x=torch.randn(3)+0; x.fill_(2); y=torch.randn(3)+0; y.zero_(); x,y", "x=torch.randn(2,3,4); x[:, -1, :], x[0, :, 1:].sum(), len(x)*x")

# Picking.
each("gather", "1, i", "x=torch.randn(3,5); i=torch.randint(0,5,(3,2))"), each("index_select", "0, i", "x=torch.randn(5,3); i=torch.randint(0,5,(4,))")
each("take_along_dim", "i, 1", "x=torch.randn(3,5); i=torch.randint(0,5,(3,2))")
each("scatter_add", "0, i, y", "x=torch.randn(5,3); i=torch.randint(0,5,(4,3)); y=torch.randn(4,3)")
each("scatter", "1, i, y", "x=torch.randn(2,4); i=torch.tensor([[0,2],[3,1]]); y=torch.randn(2,2)")
each("tril triu"), each("tril triu", "1"), each("topk", "3"), each("topk", "2, 0, False"), each("sort"), each("sort", "0, True"), each("argsort", "-1")
case("F.one_hot(torch.tensor([0,2,1]), 4)")

# Activations.
for name in "relu relu6 leaky_relu elu selu celu gelu silu mish sigmoid logsigmoid hardsigmoid hardswish hardtanh hardshrink softshrink softplus tanh softsign tanhshrink".split():
    case(f"F.{name}(torch.randn(4,7)*3)")
case("F.gelu(torch.randn(4,7), approximate='tanh')", "F.leaky_relu(torch.randn(9), 0.2)", "F.softmax(torch.randn(4,7), dim=-1)", "F.log_softmax(torch.randn(4,7), 1)", "F.softmin(torch.randn(4,7), 1)",
     "F.glu(torch.randn(4,8))", "F.prelu(torch.randn(4,3), torch.rand(3))", "F.threshold(torch.randn(9), 0.1, 20.0)", "x=torch.randn(4,3); torch.prelu(x, torch.rand(3)), x.prelu(torch.rand(3))",
     "torch.selu(torch.randn(4))", "torch.celu(torch.randn(4))", "F.softplus(torch.randn(9)*20, beta=2)", "F.relu(torch.randn(4), inplace=True)", "F.dropout(torch.randn(4), training=False)")
each("softmax log_softmax", "-1"), each("softmax", "0, dtype=torch.float64")
for name in "ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid LogSigmoid Tanh Tanhshrink Hardsigmoid Hardswish Hardtanh Hardshrink Softshrink Softplus Softsign Identity PReLU Dropout Dropout1d Dropout2d".split():
    case(f"nn.{name}().eval()(torch.randn(2,4,6))")
case("nn.Softmax(-1)(torch.randn(3,4))", "nn.LogSoftmax(1)(torch.randn(3,4))", "nn.GLU()(torch.randn(3,4))", "nn.Flatten()(torch.randn(2,3,4))", "nn.Unflatten(1,(2,3))(torch.randn(2,6))")

# Layers.
case("F.linear(torch.randn(3,4), torch.randn(5,4), torch.randn(5))", "nn.Bilinear(3,4,5)(torch.randn(2,3), torch.randn(2,4))",
     "nn.Embedding(10,4)(torch.randint(0,10,(2,3)))", "F.embedding(torch.randint(0,6,(4,)), torch.randn(6,3))",
     "F.conv1d(torch.randn(2,3,9), torch.randn(4,3,3), padding=1)", "F.conv2d(torch.randn(1,4,8,8), torch.randn(6,2,3,3), torch.randn(6), stride=2, padding=1, groups=2)", "F.conv3d(torch.randn(1,2,4,4,4), torch.randn(3,2,2,2,2))",
     "F.conv_transpose1d(torch.randn(1,3,5), torch.randn(3,2,4), stride=2)", "F.conv_transpose3d(torch.randn(1,2,3,3,3), torch.randn(2,3,2,2,2), stride=2)", "nn.ConvTranspose3d(2,3,2,stride=2)(torch.randn(1,2,3,3,3))",
     "F.conv_transpose2d(torch.randn(1,3,5,5), torch.randn(3,2,4,4), stride=2, padding=1)",
     "nn.Conv1d(3,4,3,padding='same')(torch.randn(2,3,9))", "nn.Conv2d(3,8,3,stride=2,padding=1)(torch.randn(1,3,10,10))", "nn.Conv2d(4,4,3,groups=4,dilation=2,bias=False)(torch.randn(1,4,9,9))",
     "nn.Conv3d(2,3,2)(torch.randn(1,2,4,4,4))", "nn.ConvTranspose1d(3,4,3,2)(torch.randn(1,3,5))", "nn.ConvTranspose2d(3,4,3,2,1,1)(torch.randn(1,3,5,5))",
     "nn.LayerNorm(16)(torch.randn(4,16))", "nn.LayerNorm((4,16),eps=1e-6)(torch.randn(2,4,16))", "nn.LayerNorm(16,elementwise_affine=False)(torch.randn(4,16))", "nn.RMSNorm(16,eps=1e-6)(torch.randn(4,16))",
     "nn.GroupNorm(2,6)(torch.randn(2,6,5))", "nn.BatchNorm1d(5).eval()(torch.randn(4,5))", "nn.BatchNorm2d(5).eval()(torch.randn(2,5,3,3))", "nn.BatchNorm3d(5).eval()(torch.randn(2,5,2,2,2))",
     "nn.InstanceNorm1d(3)(torch.randn(2,3,8))", "nn.InstanceNorm2d(3,affine=True)(torch.randn(2,3,4,4))", "F.instance_norm(torch.randn(2,3,8))", "F.layer_norm(torch.randn(3,8),(8,))", "F.rms_norm(torch.randn(3,8),(8,))", "F.group_norm(torch.randn(2,4,5),2)",
     "x=torch.randn(2,3,4); F.batch_norm(x, torch.zeros(3), torch.ones(3), torch.rand(3), torch.randn(3))",
     "F.scaled_dot_product_attention(torch.randn(1,2,5,8), torch.randn(1,2,7,8), torch.randn(1,2,7,8))", "q=torch.randn(1,4,6,8); k=torch.randn(1,2,6,8); v=torch.randn(1,2,6,8); F.scaled_dot_product_attention(q,k,v,is_causal=True,enable_gqa=True)",
     "q=torch.randn(2,2,6,8); F.scaled_dot_product_attention(q,q,q,torch.ones(6,6).tril().bool())", "q=torch.randn(2,2,6,8); F.scaled_dot_product_attention(q,q,q,torch.randn(6,6),scale=0.2)",
     "F.max_pool1d(torch.randn(1,2,9),3)", "F.max_pool2d(torch.randn(1,2,8,8),2)", "F.max_pool3d(torch.randn(1,2,4,4,4),2)", "F.avg_pool1d(torch.randn(1,2,9),3)", "F.avg_pool2d(torch.randn(1,2,8,8),3,2,1)", "F.adaptive_avg_pool1d(torch.randn(1,2,9),4)", "F.adaptive_avg_pool2d(torch.randn(1,2,9,7),(3,2))",
     "nn.MaxPool1d(3)(torch.randn(1,2,9))", "nn.MaxPool2d(3,2,1)(torch.randn(1,2,8,8))", "nn.MaxPool3d(2)(torch.randn(1,2,4,4,4))", "nn.AvgPool1d(3)(torch.randn(1,2,9))", "nn.AvgPool2d(2)(torch.randn(1,2,8,8))", "nn.AdaptiveAvgPool1d(4)(torch.randn(1,2,9))", "nn.AdaptiveAvgPool2d((1,1))(torch.randn(1,2,9,7))",
     "F.pad(torch.randn(2,3,4),(1,2))", "F.pad(torch.randn(1,2,3,4),(1,2,0,1),value=1.5)", "F.pad(torch.randn(1,2,8),(2,1),mode='reflect')", "F.pixel_shuffle(torch.randn(1,8,3,3),2)", "nn.PixelShuffle(2)(torch.randn(1,8,3,3))", "nn.ZeroPad2d(1)(torch.randn(1,2,3,3))",
     "F.interpolate(torch.randn(1,2,4,4),scale_factor=2)", "F.interpolate(torch.randn(1,2,4,5),size=(7,9),mode='bilinear',align_corners=False)", "nn.Upsample(scale_factor=2,mode='bilinear',align_corners=True)(torch.randn(1,2,4,4))",
     "F.normalize(torch.randn(3,4))", "F.cosine_similarity(torch.randn(3,4),torch.randn(3,4))", "nn.CosineSimilarity()(torch.randn(3,4),torch.randn(3,4))",
     "nn.Sequential(nn.Linear(4,8),nn.ReLU(),nn.Linear(8,2))(torch.randn(3,4))", "nn.ModuleDict({'a':nn.Linear(4,4)})['a'](torch.randn(3,4))")

# Losses.
case("F.cross_entropy(torch.randn(4,7), torch.randint(0,7,(4,)))", "F.cross_entropy(torch.randn(4,7), torch.randint(0,7,(4,)), reduction='none')", "F.cross_entropy(torch.randn(4,7), torch.randint(0,7,(4,)), label_smoothing=0.1)", "nn.CrossEntropyLoss()(torch.randn(2,5,3), torch.randint(0,5,(2,3)))",
     "F.nll_loss(torch.randn(4,7), torch.randint(0,7,(4,)))", "nn.NLLLoss(reduction='sum')(torch.randn(4,7), torch.randint(0,7,(4,)))",
     "F.binary_cross_entropy(torch.rand(9), torch.rand(9))", "nn.BCELoss()(torch.rand(9), torch.rand(9))", "F.kl_div(torch.randn(3,4), torch.rand(3,4), reduction='batchmean')", "F.kl_div(torch.randn(3,4), torch.randn(3,4), log_target=True, reduction='sum')")
for name in "mse_loss l1_loss smooth_l1_loss huber_loss".split():
    case(f"F.{name}(torch.randn(3,4)*2, torch.randn(3,4).abs(), reduction='sum')", f"F.{name}(torch.randn(3,4), 2*torch.randn(3,4))")
case("F.binary_cross_entropy_with_logits(torch.randn(9), torch.rand(9))", "nn.BCEWithLogitsLoss()(torch.randn(9), torch.rand(9))")
for name in "MSELoss L1Loss SmoothL1Loss".split():
    case(f"nn.{name}()(torch.randn(3,4), 2*torch.randn(3,4))")

# Creation and types.
case("x=torch.randn(3,4); x+torch.zeros(3,4)+torch.ones(4)*torch.full((3,1),2.5)", "torch.arange(5), torch.arange(2,9,3), torch.arange(0,1,0.25), torch.arange(5.0), torch.linspace(-1,1,7), torch.eye(3), torch.eye(2,4)",
     "torch.tensor([[1,2],[3,4]]), torch.tensor(2.5), torch.tensor([True,False]), torch.as_tensor([1.5]), torch.empty(2).shape[0]*torch.ones(2)", "x=torch.randn(2,3); torch.zeros_like(x), torch.ones_like(x), torch.full_like(x,3), x.new_zeros(2), x.new_ones((2,2)), x.new_full((2,),7.0), torch.empty_like(x)*0",
     "torch.manual_seed(0); torch.randn_like(torch.zeros(3,4)), torch.rand_like(torch.zeros(2,5)), torch.randint(3,9,(4,)), torch.rand(2,2)", "x=torch.randn(4); x.half(), x.double(), x.bfloat16().float(), x.float(), (x*9).long(), (x*9).int(), x.bool(), x.to(torch.float16), x.to('cpu'), x.type(torch.float64), x.type_as(torch.zeros(1,dtype=torch.float64))",
     "x=torch.randn(4,6); x*x.shape[0], x*x.size(1), x*x.dim(), x*x.ndim, x*x.numel(), x*torch.numel(x), x*x.nelement(), x*x.element_size()", "x=torch.randn(3).half(); x if x.dtype==torch.float16 and x.is_floating_point() and torch.is_floating_point(x) and x.device is not None and not x.requires_grad else -x",
     "f=torch.compile(lambda x: x*2); f(torch.randn(3).to(torch.device('cpu')))", "torch.randn(3, dtype=torch.float64)*math.pi", "x=torch.randn(5).half(); x*2.5+x.sum()", "(torch.randn(4).half()@torch.randn(4,3).half())", "x=torch.randn(4,4).bfloat16(); F.softmax(x@x, -1)")

# Python.
case("x=torch.randn(3); math.sqrt(2)*x+math.exp(1)+math.log(3)+math.log(8,2)+math.log2(8)+math.log10(5)+math.sin(1)+math.cos(1)+math.tan(1)+math.tanh(1)+math.atan(1)+math.fabs(-2)+math.pow(2,3)+math.floor(2.7)+math.ceil(2.2)+math.trunc(2.5)+math.gcd(12,18)+math.isqrt(17)+math.prod([2,3])+int(math.isnan(1.0))+int(math.isinf(1.0))",
     "x=torch.randn(4,4); sum(x[i]*w for i,w in enumerate([1,2,3])) + len(x) + max(1,2) + min([3,4]) + abs(-1) + round(2.6) + pow(2,3)", "x=torch.randn(4); [x*a+b for a,b in zip(range(3),reversed([1,2,3]))]", "xs=sorted([3,1,2]); x=torch.randn(3); x*xs[0] if any([0,1]) and all([1,1]) and isinstance(x,torch.Tensor) and hasattr(x,'shape') and callable(F.relu) else x",
     "x=torch.randn(3); x*getattr(math,'pi'); y=list(map(lambda v: v*x,[1,2])); print('nothing'); y[1]")
case("""
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc1 = nn.Linear(d, 2*d); self.fc2 = nn.Linear(2*d, d)
        self.norm = nn.RMSNorm(d)
        self.scale = nn.Parameter(torch.ones(d))
        self.register_buffer('mask', torch.tril(torch.ones(4, 4)))
        setattr(self, 'k', 2)
    def forward(self, x):
        h = F.silu(self.fc1(self.norm(x)))
        return x + self.fc2(h) * self.scale + (self.mask @ x) * self.k
Net(8)(torch.randn(4, 8))
""", """
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin
x = torch.randn(1, 2, 6, 8)
freq = 1.0 / (10000 ** (torch.arange(0, 8, 2).float() / 8))
angle = torch.outer(torch.arange(6).float(), freq)
angle = torch.cat((angle, angle), dim=-1)
rotate(x, angle.cos(), angle.sin())
""", """
blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU()) for _ in range(3)])
x = torch.randn(5, 8)
with torch.no_grad():
    for b in blocks: x = x + b(x)
x
""", """
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim)
    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1)) / math.sqrt(d // self.h)
        a = a.masked_fill(torch.triu(torch.ones(s, s), diagonal=1).bool(), float('-inf')).softmax(-1)
        return self.out((a @ v).transpose(1, 2).reshape(b, s, d))
Attention(16, 4)(torch.randn(2, 5, 16))
""")
case("m=nn.MultiheadAttention(16,4,batch_first=True).eval(); x=torch.randn(2,5,16); m(x,x,x)[0]", "m=nn.MultiheadAttention(16,2); q=torch.randn(5,2,16); k=torch.randn(7,2,16); m(q,k,k)", "m=nn.MultiheadAttention(8,2,batch_first=True); x=torch.randn(1,4,8); m(x,x,x,attn_mask=torch.ones(4,4).triu(1).bool(),need_weights=False)[0]",
     "nn.TransformerEncoderLayer(16,4,32,batch_first=True).eval()(torch.randn(2,5,16))", "nn.TransformerEncoderLayer(16,4,32,activation='gelu',norm_first=True,batch_first=True).eval()(torch.randn(2,5,16))", "nn.TransformerEncoder(nn.TransformerEncoderLayer(16,4,32,batch_first=True).eval(),1,enable_nested_tensor=False).eval()(torch.randn(2,5,16))")

# Functions without a result to compare: refused here, or known to PyTorch under another name.
WITHOUT_A_CASE = {"Tensor.item", "Tensor.tolist", "torch.nn.Module", "torch.numel", "setattr", "range", "torch.nn.functional.softmin"}


def seeded(name, shape, dtype, low=None, high=None, kind="normal"):
    rng = np.random.default_rng(zlib.crc32(f"{name}|{list(shape)}".encode()))
    if kind == "integers":
        return torch.from_numpy(rng.integers(low, high, size=shape)).to(dtype)
    x = rng.random(shape) if kind == "uniform" else rng.standard_normal(shape)
    return torch.from_numpy(np.asarray(x)).to(torch.float32).to(dtype)


class Named(ast.NodeTransformer):
    """`x = torch.randn(...)` knows the name of its input."""

    def visit_Assign(self, node):
        self.generic_visit(node)
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and ast.unparse(value.func) in RANDOM:
            value.keywords.append(ast.keyword("name", ast.Constant(target.id)))
        return node


RANDOM = ("torch.randn", "torch.rand", "torch.randint", "torch.randn_like", "torch.rand_like")


def weights(module):
    for name, t in list(module.named_parameters()) + list(module.named_buffers()):
        last = name.rsplit(".", 1)[-1]
        if last in ("num_batches_tracked", "mask"):
            continue
        value = weight(last, t.shape, t.dtype)
        t.data = value


def weight(last, shape, dtype):
    x = seeded(last, tuple(shape), torch.float32, kind="normal") * 0.5
    return (x.abs() + 0.5 if last == "running_var" else x).to(dtype)


def run_torch(text, dtype):
    """The values of the text's last expression."""
    torch.set_default_dtype(dtype)
    saved = {n: getattr(torch, n) for n in [r.split(".")[1] for r in RANDOM] + ["compile"]}
    call = nn.Module.__call__

    def shape_of(size):
        return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list, torch.Size)) else tuple(size)

    def wide(asked):
        return asked if asked is not None else dtype

    torch.compile = lambda f: f
    torch.randn = lambda *size, name="x", dtype=None: seeded(name, shape_of(size), wide(dtype))
    torch.rand = lambda *size, name="x", dtype=None: seeded(name, shape_of(size), wide(dtype), kind="uniform")
    torch.randn_like = lambda t, name="x", dtype=None: seeded(name, tuple(t.shape), dtype or t.dtype)
    torch.rand_like = lambda t, name="x", dtype=None: seeded(name, tuple(t.shape), dtype or t.dtype, kind="uniform")
    torch.randint = lambda low, high, size, name="x": seeded(name, size, torch.int64, low, high, "integers")
    filled = []

    def filling(self, *args, **kwargs):
        if not any(m is self for m in filled):
            weights(self)
            filled.extend(self.modules())
        return call(self, *args, **kwargs)

    nn.Module.__call__ = filling
    try:
        tree = Named().visit(ast.parse(text))
        last = tree.body[-1]
        scope = {"torch": torch, "nn": nn, "F": F, "math": math}
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("__out", ast.Store())], last.value)
        with torch.no_grad():
            exec(compile(ast.fix_missing_locations(tree), "case", "exec"), scope)
        return flat(scope["__out"])
    finally:
        nn.Module.__call__ = call
        for n, f in saved.items():
            setattr(torch, n, f)
        torch.set_default_dtype(torch.float32)


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value.detach()]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return []


TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32}


def save(path, t):
    if t.dtype == torch.bfloat16:
        np.save(path, t.view(torch.uint16).numpy())
        return f"bf16@{path}"
    np.save(path, t.numpy())
    return path


class Refused(Exception):
    pass


def girih(program, text, device, folder, names):
    """The outputs, as arrays by name."""
    listing = subprocess.run([program, "compile", "-c", text, "--ir", "torch"], capture_output=True, text=True)
    if listing.returncode:
        raise Refused(listing.stderr)
    command = [program, "run", "-c", text, "--device", device]
    for line in listing.stdout.splitlines():
        m = re.match(r'\s*([\w.]+)(?: "([^"]+)")?: (\w+)\[(.*?)\] = (input|parameter)(.*)', line)
        if not m:
            continue
        name, real, dtype, shape, role, rest = m.groups()
        name = real or name
        shape = tuple(int(d) for d in shape.split(",") if d.strip())
        if role == "parameter":
            # A number may tell weights of one name apart: weight, weight1.
            t = weight(re.sub(r"\d+$", "", name.rsplit(".", 1)[-1]) or name, shape, TYPES[dtype])
        else:
            given = name if name in names else "x"
            fill = re.search(r"integers\((-?\d+), (-?\d+)\)|(uniform)", rest)
            if dtype.startswith("i") and fill:
                t = seeded(given, shape, TYPES[dtype], int(fill[1]), int(fill[2]), "integers")
            else:
                t = seeded(given, shape, TYPES[dtype], kind="uniform" if fill else "normal")
        command += ["--arg", f"{name}={save(os.path.join(folder, name + '.npy'), t)}"]
    outputs = re.findall(r'^\s*output (?:"?([\w.]+)"? = )?([\w.]+)', listing.stdout, re.M)
    return command, [named or value for named, value in outputs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("girih")
    parser.add_argument("--filter", default="")
    parser.add_argument("--device", default="eval")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    failures = []
    for text in CASES:
        if options.filter not in text:
            continue
        try:
            check(options, text)
        except Refused as e:
            failures.append((text, f"refused: {e}"))
        except AssertionError as e:
            failures.append((text, str(e)))
        else:
            continue
        text, why = failures[-1]
        print(f"{text}\n    {why.strip()}\n", flush=True)
    if not options.filter:
        failures += [(n, "has no case") for n in without_case(options.girih)]
    print(f"{len(CASES)} cases, {len(failures)} failures")
    sys.exit(bool(failures))


def check(options, text):
    single, double = run_torch(text, torch.float32), run_torch(text, torch.float64)
    names = set(re.findall(r"(\w+)\s*=\s*torch\.(?:randn|rand|randint)(?:_like)?\(", text))
    with tempfile.TemporaryDirectory() as folder:
        command, outputs = girih(options.girih, text, options.device, folder, names)
        for n in outputs:
            command += ["--save", f"{n}={os.path.join(folder, n)}.out.npy"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Refused(done.stderr)
        found = [np.load(os.path.join(folder, n) + ".out.npy") for n in outputs]
    assert len(found) == len(single), f"{len(found)} outputs, PyTorch has {len(single)}"
    for i, (got, s, d) in enumerate(zip(found, single, double)):
        assert tuple(got.shape) == tuple(s.shape), f"output {i}: shape {got.shape}, PyTorch has {tuple(s.shape)}"
        if s.dtype == torch.bfloat16:
            got = torch.from_numpy(got.view(np.uint16).astype(np.int32)).to(torch.uint16).view(torch.bfloat16).float().numpy()
            eps = 2.0**-8
        elif s.dtype.is_floating_point:
            assert torch.from_numpy(got).dtype == s.dtype, f"output {i}: {got.dtype}, PyTorch has {s.dtype}"
            eps = {torch.float16: 2.0**-11, torch.float32: 2.0**-24, torch.float64: 2.0**-53}[s.dtype]
        else:
            assert got.dtype == s.numpy().dtype, f"output {i}: {got.dtype}, PyTorch has {s.dtype}"
            assert np.array_equal(got, s.numpy()), f"output {i}:\n{got}\nPyTorch:\n{s}"
            continue
        reference = d.double().numpy()
        # Where the text itself asks for a narrow type, PyTorch's own distance from float64 counts too.
        own = np.abs(s.double().numpy() - reference)
        own = np.nanmax(np.where(np.isfinite(own), own, 0), initial=0.0)
        finite = np.isfinite(reference)
        largest = np.max(np.abs(reference[finite]), initial=1.0)
        k = max([int(n) for n in re.findall(r"\d+", text) if int(n) < 1000] + [1])
        bound = eps * (16 + 4 * math.sqrt(k)) * largest + 2 * own
        assert np.array_equal(finite, np.isfinite(got)), f"output {i}: infinities or NaN differ\n{got}\n{reference}"
        error = np.max(np.abs(got.astype(np.float64) - reference)[finite], initial=0.0)
        assert error <= bound, f"output {i}: error {error:.3g}, bound {bound:.3g}"


def without_case(program):
    """The names that help lists and no case uses."""
    text = subprocess.run([program, "compile", "-c", "help"], capture_output=True, text=True, check=True).stdout
    names = [w for line in text.splitlines() if line.startswith("  ") for w in line.split()]
    everything = "\n".join(CASES)
    missing = []
    for name in names:
        head, _, short = name.rpartition(".")
        if head == "Tensor":
            # A method on anything that is not a module.
            pattern = rf"(?<!torch)(?<!F)(?<!nn)(?<!math)\.{short}\b"
        elif head == "torch.nn.functional":
            pattern = rf"\bF\.{short}\b"
        elif head == "torch.nn":
            pattern = rf"\bnn\.{short}\b"
        else:
            pattern = rf"(?<!\.)\b{re.escape(name)}\b"
        if not re.search(pattern, everything) and name not in WITHOUT_A_CASE:
            missing.append(name)
    for name in missing:
        print(f"{name} has no case")
    return missing


if __name__ == "__main__":
    main()
