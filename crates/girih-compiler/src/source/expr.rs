//! One-line expressions: `torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))`.
