from otter.test_files import test_case

OK_FORMAT = False

name = "preactivation_stds"
points = None

@test_case(name='one layer, by hand, before the activation', points=None, hidden=False)
def test_one_layer(preactivation_stds):
    """one layer, by hand, before the activation"""
    import math
    import torch
    stds = preactivation_stds([torch.tensor([[1.0]])], torch.tensor([[-1.0], [1.0]]), torch.relu)
    message = '`preactivation_stds` returned None: replace the `...`'
    assert stds is not None, message
    message = f'one weight matrix should give a list with one number, not {stds!r}'
    assert isinstance(stds, list) and len(stds) == 1, message
    message = f'weight 1 and inputs -1, 1: the pre-activations are -1, 1 and their sample standard deviation is the root of 2; yours is {float(stds[0]):.4f}. (1 comes from dividing by n, 0.7071 from measuring after the ReLU.)'
    assert math.isclose(stds[0], math.sqrt(2), rel_tol=1e-05), message

@test_case(name='the second layer sees what the activation lets through', points=None, hidden=False)
def test_two_layers(preactivation_stds):
    """the second layer sees what the activation lets through"""
    import math
    import torch
    weights = [torch.tensor([[1.0]]), torch.tensor([[3.0]])]
    stds = preactivation_stds(weights, torch.tensor([[-1.0], [1.0]]), torch.relu)
    message = '`preactivation_stds` returned None: replace the `...`'
    assert stds is not None, message
    message = f'two weight matrices should give two numbers, got {len(stds)}; the inputs are not an entry'
    assert len(stds) == 2, message
    message = f'ReLU turns -1, 1 into 0, 1 and the weight 3 makes that 0, 3, with standard deviation 3 over the root of 2 (2.1213); yours is {float(stds[1]):.4f}'
    assert math.isclose(stds[1], 3 / math.sqrt(2), rel_tol=1e-05), message

@test_case(name='layers of different widths; plain numbers come back', points=None, hidden=False)
def test_shapes(preactivation_stds):
    """layers of different widths; plain numbers come back"""
    import torch
    weights = [torch.ones(5, 3), torch.ones(2, 5, requires_grad=True)]
    stds = preactivation_stds(weights, torch.arange(12.0).reshape(4, 3), torch.tanh)
    message = '`preactivation_stds` returned None: replace the `...`'
    assert stds is not None, message
    message = 'the entries should be plain Python floats: `.item()` takes a number out of a tensor'
    assert all((type(std) is float for std in stds)), message
