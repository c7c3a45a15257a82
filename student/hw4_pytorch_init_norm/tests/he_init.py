from otter.test_files import test_case

OK_FORMAT = False

name = "he_init"
points = None

@test_case(name='the tensor itself is filled and returned', points=None, hidden=False)
def test_fills_in_place(he_normal, he_uniform):
    """the tensor itself is filled and returned"""
    import torch
    for name, fill in {'he_normal': he_normal, 'he_uniform': he_uniform}.items():
        weight = torch.zeros(3, 5)
        result = fill(weight)
        message = f'`{name}` returned None: replace the `...`, and end with a `return` of the tensor'
        assert result is not None, message
        message = f'`{name}` must return the very tensor it was given, overwritten in place, not a new one'
        assert result is weight, message
        message = f'`{name}` left entries of the tensor at zero'
        assert weight.count_nonzero() == weight.numel(), message

@test_case(name='he_normal has the right spread', points=None, hidden=False)
def test_normal_spread(he_normal):
    """he_normal has the right spread"""
    import torch
    weight = he_normal(torch.empty(200, 800))
    message = '`he_normal` returned None: replace the `...`'
    assert weight is not None, message
    spread = weight.std().item()
    message = f'a (200, 800) weight has fan-in 800, so the standard deviation is the root of 2/800, which is 0.05; yours is {spread:.4f}. Which axis is the fan-in? Does `normal_` take the variance or the standard deviation?'
    assert abs(spread - 0.05) < 0.001, message

@test_case(name='he_uniform stays within the right bound', points=None, hidden=False)
def test_uniform_bound(he_uniform):
    """he_uniform stays within the right bound"""
    import torch
    weight = he_uniform(torch.empty(200, 600))
    message = '`he_uniform` returned None: replace the `...`'
    assert weight is not None, message
    largest = weight.abs().max().item()
    message = f'a (200, 600) weight needs variance 2/600; solving b²/3 = 2/600 gives b = 0.1, but your largest entry is {largest:.4f}. Did you take the standard deviation for the bound?'
    assert 0.099 < largest <= 0.1 + 1e-06, message

@test_case(name='a generator passed in decides the draws', points=None, hidden=False)
def test_generator(he_normal, he_uniform):
    """a generator passed in decides the draws"""
    import torch
    for name, fill in {'he_normal': he_normal, 'he_uniform': he_uniform}.items():
        first, second = (fill(torch.zeros(3, 5), generator=torch.Generator().manual_seed(4)) for _ in range(2))
        message = f'`{name}` returned None: replace the `...`'
        assert first is not None, message
        message = f'`{name}` drew different values from two generators with the same seed: pass `generator` on'
        assert torch.equal(first, second), message
