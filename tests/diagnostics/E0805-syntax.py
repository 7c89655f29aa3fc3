# girih compile -c {text} --ir torch
# exit 1, at 4:1
x = torch.randn(32, 64
y = x +
lambda x: (yield)
