# girih compile -c {text} --ir torch
# exit 1, at 4:5
x = torch.randn(32, 64)
y = torch.sofmax(x, dim=-1)
y * 2
