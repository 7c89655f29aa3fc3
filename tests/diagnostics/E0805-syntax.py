# girih compile -c {text} --ir torch
# exit 1, at 3:23
x = torch.randn(32, 64
y = x +
lambda x: (yield)
