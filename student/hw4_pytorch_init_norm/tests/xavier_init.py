from otter.test_files import test_case

OK_FORMAT = False

name = "xavier_init"
points = None

@test_case(name='the tensor itself is filled and returned', points=None, hidden=False)
def test_fills_in_place(xavier_normal, xavier_uniform):
    """the tensor itself is filled and returned"""
    import torch
    for name, fill in {'xavier_normal': xavier_normal, 'xavier_uniform': xavier_uniform}.items():
        weight = torch.zeros(3, 5)
        result = fill(weight)
        message = f'`{name}` returned None: replace the `...`, and end with a `return` of the tensor'
        assert result is not None, message
        message = f'`{name}` must return the very tensor it was given, overwritten in place, not a new one'
        assert result is weight, message
        message = f'`{name}` left entries of the tensor at zero'
        assert weight.count_nonzero() == weight.numel(), message

@test_case(name='xavier_normal has the right spread', points=None, hidden=False)
def test_normal_spread(xavier_normal):
    """xavier_normal has the right spread"""
    import torch
    weight = xavier_normal(torch.empty(300, 500))
    message = '`xavier_normal` returned None: replace the `...`'
    assert weight is not None, message
    spread = weight.std().item()
    message = f'a (300, 500) weight has fan-in 500 and fan-out 300, so the standard deviation is the root of 2/800, which is 0.05; yours is {spread:.4f}'
    assert abs(spread - 0.05) < 0.001, message

@test_case(name='xavier_uniform stays within the right bound', points=None, hidden=False)
def test_uniform_bound(xavier_uniform):
    """xavier_uniform stays within the right bound"""
    import torch
    weight = xavier_uniform(torch.empty(200, 400))
    message = '`xavier_uniform` returned None: replace the `...`'
    assert weight is not None, message
    largest = weight.abs().max().item()
    message = f'a (200, 400) weight needs variance 2/600; solving b²/3 = 2/600 gives b = 0.1, but your largest entry is {largest:.4f}'
    assert 0.099 < largest <= 0.1 + 1e-06, message

@test_case(name='the weight of a layer can be filled, and still be trained', points=None, hidden=False)
def test_parameter(xavier_normal, xavier_uniform):
    """the weight of a layer can be filled, and still be trained"""
    import torch
    for name, fill in {'xavier_normal': xavier_normal, 'xavier_uniform': xavier_uniform}.items():
        weight = torch.nn.Linear(4, 3).weight
        result = fill(weight)
        message = f'`{name}` returned None: replace the `...`'
        assert result is not None, message
        message = f'after `{name}` the weight should still require gradients, and the filling should not be recorded'
        assert weight.requires_grad and weight.grad_fn is None, message
