from otter.test_files import test_case

OK_FORMAT = False

name = "layer_norm"
points = None

@test_case(name='each row on its own, by hand', points=None, hidden=False)
def test_each_row(layer_norm):
    """each row on its own, by hand"""
    import torch
    out = layer_norm(torch.tensor([[1.0, 3.0], [10.0, 30.0]]), torch.ones(2), torch.zeros(2), eps=0.0)
    message = '`layer_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'the rows 1, 3 and 10, 30 both normalize to -1, 1 (biased variance); yours became {out[0].tolist()} and {out[1].tolist()}. Which axis are your statistics taken over?'
    assert torch.allclose(out, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]])), message

@test_case(name='gamma and beta belong to the units; eps stands inside the square root', points=None, hidden=False)
def test_gamma_beta_eps(layer_norm):
    """gamma and beta belong to the units; eps stands inside the square root"""
    import torch
    out = layer_norm(torch.tensor([[-1.0, 1.0]]), torch.tensor([2.0, 4.0]), torch.tensor([0.0, 1.0]), eps=3.0)
    message = '`layer_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'the row -1, 1 has variance 1; with eps = 3 it becomes -0.5, 0.5. Scaled by 2 and 4, then shifted by 0 and 1, that is -1, 3; yours is {out[0].tolist()}'
    assert torch.allclose(out, torch.tensor([[-1.0, 3.0]])), message

@test_case(name='any number of axes in front of the last', points=None, hidden=False)
def test_leading_axes(layer_norm):
    """any number of axes in front of the last"""
    import torch
    a = torch.arange(24.0).reshape(2, 3, 4) ** 2
    gamma, beta = (torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4))
    out, part = (layer_norm(a, gamma, beta), layer_norm(a[1], gamma, beta))
    message = '`layer_norm` returned None: replace the `...`'
    assert out is not None, message
    message = 'a (2, 3, 4) tensor holds six data points of four units: its second half should come out as it does alone, as a (3, 4) matrix; count axes from the end, and use the last one'
    assert out.shape == a.shape and torch.allclose(out[1], part, atol=1e-05), message
