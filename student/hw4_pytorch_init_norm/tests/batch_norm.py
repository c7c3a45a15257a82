from otter.test_files import test_case

OK_FORMAT = False

name = "batch_norm"
points = None

@test_case(name='one column, by hand', points=None, hidden=False)
def test_one_column(batch_norm):
    """one column, by hand"""
    import torch
    out = batch_norm(torch.tensor([[1.0], [3.0]]), torch.ones(1), torch.zeros(1), eps=0.0)
    message = '`batch_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'the result should have the shape of the input, (2, 1), not {tuple(out.shape)}'
    assert out.shape == (2, 1), message
    message = f'the column 1, 3 has mean 2 and biased variance 1, so it becomes -1, 1; yours became {out[0, 0]:.4f}, {out[1, 0]:.4f}. (0.7071 comes from dividing by K - 1.)'
    assert torch.allclose(out, torch.tensor([[-1.0], [1.0]])), message

@test_case(name='each column on its own, with its own gamma and beta', points=None, hidden=False)
def test_each_column(batch_norm):
    """each column on its own, with its own gamma and beta"""
    import torch
    a = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    out = batch_norm(a, torch.tensor([2.0, 0.5]), torch.tensor([0.0, 1.0]), eps=0.0)
    message = '`batch_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'both columns of [[1, 10], [3, 30]] normalize to -1, 1. Scaled by 2 and 0.5, then shifted by 0 and 1, they are -2, 2 and 0.5, 1.5; yours are {out[:, 0].tolist()} and {out[:, 1].tolist()}'
    assert torch.allclose(out, torch.tensor([[-2.0, 0.5], [2.0, 1.5]])), message

@test_case(name='eps stands inside the square root', points=None, hidden=False)
def test_eps(batch_norm):
    """eps stands inside the square root"""
    import torch
    out = batch_norm(torch.tensor([[-1.0], [1.0]]), torch.ones(1), torch.zeros(1), eps=3.0)
    message = '`batch_norm` returned None: replace the `...`'
    assert out is not None, message
    message = f'the column -1, 1 has variance 1; with eps = 3 it is divided by the root of 1 + 3, which gives -0.5, 0.5; yours gave {out[0, 0]:.4f}, {out[1, 0]:.4f}'
    assert torch.allclose(out, torch.tensor([[-0.5], [0.5]])), message

@test_case(name='the gradient passes through the mean and the variance', points=None, hidden=False)
def test_gradient(batch_norm):
    """the gradient passes through the mean and the variance"""
    import torch
    a = torch.tensor([[1.0], [2.0], [6.0]], requires_grad=True)
    gamma, beta = (torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True))
    out = batch_norm(a, gamma, beta)
    message = '`batch_norm` returned None: replace the `...`'
    assert out is not None, message
    out[0].sum().backward()
    message = 'no gradient arrived at a, gamma or beta: do not detach anything, and do not use no_grad here'
    assert a.grad is not None and gamma.grad is not None and (beta.grad is not None), message
    message = f'adding a constant to a column does not change the result, so the gradient with respect to the column must sum to zero; yours sums to {a.grad.sum():.4f}. Is the mean part of the computation that autograd records?'
    assert abs(a.grad.sum()) < 0.0001, message
