from otter.test_files import test_case

OK_FORMAT = False

name = "batch_norm_module"
points = None

@test_case(name='parameters and buffers, and where they start', points=None, hidden=False)
def test_parameters_and_buffers(BatchNorm):
    """parameters and buffers, and where they start"""
    layer = BatchNorm(3)
    parameters = {name: value.tolist() for name, value in layer.named_parameters()}
    message = f'`BatchNorm(3)` has the parameters {sorted(parameters)}, and should have weight and bias: in `__init__`, replace the `...`'
    assert sorted(parameters) == ['bias', 'weight'], message
    message = f'weight should start as three ones and bias as three zeros, not {parameters}'
    assert parameters == {'weight': [1.0, 1.0, 1.0], 'bias': [0.0, 0.0, 0.0]}, message
    buffers = {name: value.tolist() for name, value in layer.named_buffers()}
    message = f'running_mean and running_var should be buffers (`register_buffer`); the buffers are {sorted(buffers)}'
    assert {'running_mean', 'running_var'} <= set(buffers), message
    message = f'running_mean should start as three zeros and running_var as three ones, not {buffers}'
    assert buffers['running_mean'] == [0.0, 0.0, 0.0] and buffers['running_var'] == [1.0, 1.0, 1.0], message

@test_case(name='training: normalizes with the batch and updates the averages', points=None, hidden=False)
def test_training(BatchNorm):
    """training: normalizes with the batch and updates the averages"""
    import torch
    layer = BatchNorm(1)
    out = layer(torch.tensor([[1.0], [3.0]]))
    message = 'calling a `BatchNorm` returned None: replace the `...` in `forward`'
    assert out is not None, message
    message = f'while training, the column 1, 3 becomes -1, 1; yours became {out[0, 0]:.3f}, {out[1, 0]:.3f}'
    assert torch.allclose(out, torch.tensor([[-1.0], [1.0]]), atol=0.0001), message
    message = f'after this one batch the running mean is 0.2 and the running variance 1.1; yours are {layer.running_mean.item():.4f} and {layer.running_var.item():.4f}'
    assert abs(layer.running_mean.item() - 0.2) < 1e-05 and abs(layer.running_var.item() - 1.1) < 1e-05, message

@test_case(name='evaluation: normalizes with the averages and leaves them alone', points=None, hidden=False)
def test_evaluation(BatchNorm):
    """evaluation: normalizes with the averages and leaves them alone"""
    import torch
    layer = BatchNorm(1, eps=1.0)
    message = '`BatchNorm` has no `weight`, `bias`, `running_mean`, `running_var` yet: replace the `...` in `__init__`'
    assert all((hasattr(layer, name) for name in ('weight', 'bias', 'running_mean', 'running_var'))), message
    with torch.no_grad():
        for name, value in {'weight': 3.0, 'bias': -1.0, 'running_mean': 1.0, 'running_var': 3.0}.items():
            getattr(layer, name).fill_(value)
    layer.eval()
    out = layer(torch.tensor([[5.0]]))
    message = 'calling a `BatchNorm` in evaluation mode returned None: replace the `...` in `forward`'
    assert out is not None, message
    message = f'running mean 1, running variance 3, eps 1: the input 5 normalizes to (5 - 1)/2 = 2, and weight 3 with bias -1 makes that 5; yours is {out.item():.4f}'
    assert abs(out.item() - 5.0) < 1e-05, message
    message = 'evaluating must not change the running statistics'
    assert layer.running_mean.item() == 1.0 and layer.running_var.item() == 3.0, message

@test_case(name='a single row while training is refused', points=None, hidden=False)
def test_single_row(BatchNorm):
    """a single row while training is refused"""
    import torch
    try:
        BatchNorm(2)(torch.tensor([[1.0, 2.0]]))
    except ValueError:
        refused = True
    else:
        refused = False
    message = 'one row has no spread to normalize with: while training, `forward` should raise a ValueError for it'
    assert refused, message
