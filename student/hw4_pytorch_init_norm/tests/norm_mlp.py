from otter.test_files import test_case

OK_FORMAT = False

name = "norm_mlp"
points = None

@test_case(name='the layers and norms that it should have', points=None, hidden=False)
def test_structure(NormMLP):
    """the layers and norms that it should have"""
    from torch import nn
    for norm, count in {'none': 0, 'batch': 2, 'layer': 2}.items():
        model = NormMLP([2, 5, 3, 1], norm=norm)
        message = '`NormMLP` has no `layers` and `norms` yet: replace the `...` in `__init__`'
        assert hasattr(model, 'layers') and hasattr(model, 'norms'), message
        message = '`layers` and `norms` should be of type `nn.ModuleList`'
        assert isinstance(model.layers, nn.ModuleList) and isinstance(model.norms, nn.ModuleList), message
        message = f'dims [2, 5, 3, 1] make 3 linear layers, not {len(model.layers)}'
        assert len(model.layers) == 3, message
        message = f'with norm={norm!r} and two hidden layers there should be {count} norms, not {len(model.norms)}'
        assert len(model.norms) == count, message

@test_case(name='activation after the hidden layer, none after the last', points=None, hidden=False)
def test_forward(NormMLP):
    """activation after the hidden layer, none after the last"""
    import torch
    model = NormMLP([1, 1, 1], activation='relu')
    message = '`NormMLP` has no `layers` yet: replace the `...` in `__init__`'
    assert hasattr(model, 'layers'), message
    with torch.no_grad():
        for layer, weight, bias in zip(model.layers, (1.0, -2.0), (0.0, 1.0)):
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    out = model(torch.tensor([[3.0], [-3.0]]))
    message = 'calling a `NormMLP` returned None: replace the `...` in `forward`'
    assert out is not None, message
    message = f'hidden weight 1, output weight -2 and bias 1: the inputs 3, -3 become 3, 0 after the ReLU and -5, 1 at the output; yours are {out.flatten().tolist()}. Is there an activation after the last layer?'
    assert torch.allclose(out, torch.tensor([[-5.0], [1.0]])), message

@test_case(name='normalization comes before the activation', points=None, hidden=False)
def test_order(NormMLP):
    """normalization comes before the activation"""
    import torch
    model = NormMLP([1, 1, 1], activation='relu', norm='batch')
    message = '`NormMLP` has no `layers` yet: replace the `...` in `__init__`'
    assert hasattr(model, 'layers'), message
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    out = model(torch.tensor([[1.0], [3.0]]))
    message = 'calling a `NormMLP` returned None: replace the `...` in `forward`'
    assert out is not None, message
    message = f'batch norm turns 1, 3 into -1, 1, and the ReLU after it makes that 0, 1; yours are {out.flatten().tolist()}. (-1, 1 means that the activation came first.)'
    assert torch.allclose(out, torch.tensor([[0.0], [1.0]]), atol=0.0001), message
