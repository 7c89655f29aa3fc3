# girih compile -c {text} --ir torch
# exit 1, at 3:6
fc = nn.Linear(64, 16, biass=False)
x = torch.randn(32, 64)
if x.sum() > 0: x = -x
a = x @ torch.randn(32, 64)
fc(x) + a
