from otter.test_files import test_case

OK_FORMAT = False

name = "rms_norm"
points = None

@test_case(name='one row, by hand', points=None, hidden=False)
def test_by_hand(rms_norm):
    """one row, by hand"""
    import torch
    out = rms_norm(torch.tensor([[1.0, 7.0]]), torch.ones(2), eps=0.0)
    message = '`rms_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'the squares of 1, 7 have mean 25, so the row is divided by 5 and becomes 0.2, 1.4; yours became {out[0].tolist()}. Mean or sum of the squares?'
    assert torch.allclose(out, torch.tensor([[0.2, 1.4]])), message

@test_case(name='nothing is subtracted', points=None, hidden=False)
def test_nothing_subtracted(rms_norm):
    """nothing is subtracted"""
    import torch
    out = rms_norm(torch.tensor([[4.0, 4.0]]), torch.ones(2), eps=0.0)
    message = '`rms_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'the row 4, 4 has root mean square 4 and becomes 1, 1; yours became {out[0].tolist()}'
    assert torch.allclose(out, torch.ones(1, 2)), message

@test_case(name='gamma belongs to the units; eps stands inside the square root', points=None, hidden=False)
def test_gamma_eps(rms_norm):
    """gamma belongs to the units; eps stands inside the square root"""
    import torch
    out = rms_norm(torch.tensor([[1.0, 7.0]]), torch.tensor([6.0, 12.0]), eps=11.0)
    message = '`rms_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'mean square 25 and eps = 11: the row 1, 7 is divided by the root of 36; scaled by 6 and 12 it is 1, 14; yours is {out[0].tolist()}'
    assert torch.allclose(out, torch.tensor([[1.0, 14.0]])), message
