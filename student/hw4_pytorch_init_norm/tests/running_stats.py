from otter.test_files import test_case

OK_FORMAT = False

name = "running_stats"
points = None

@test_case(name='one step, by hand', points=None, hidden=False)
def test_one_step(update_running_stats):
    """one step, by hand"""
    import torch
    result = update_running_stats(torch.zeros(1), torch.ones(1), torch.tensor([[1.0], [3.0]]), momentum=0.1)
    message = '`update_running_stats` returned None: replace the `...`'
    assert result is not None, message
    mean, var = result
    message = f'old mean 0, batch mean 2, momentum 0.1: the new mean is 0.2; yours is {mean.item():.4f}'
    assert torch.allclose(mean, torch.tensor([0.2])), message
    message = f'old variance 1, unbiased variance of 1, 3 is 2, momentum 0.1: the new variance is 0.9 + 0.2 = 1.1; yours is {var.item():.4f}. (1.0 comes from the biased variance, 1.0414 from the standard deviation.)'
    assert torch.allclose(var, torch.tensor([1.1])), message

@test_case(name='momentum is the weight of the new batch', points=None, hidden=False)
def test_momentum(update_running_stats):
    """momentum is the weight of the new batch"""
    import torch
    batch = torch.tensor([[1.0], [3.0]])
    result = update_running_stats(torch.tensor([7.0]), torch.tensor([5.0]), batch, momentum=0.0)
    message = '`update_running_stats` returned None: replace the `...`'
    assert result is not None, message
    message = 'with momentum 0 the new batch has no weight: the averages should stay at 7 and 5'
    assert result[0].item() == 7.0 and result[1].item() == 5.0, message

@test_case(name='new tensors, no graph, and the old averages as they were', points=None, hidden=False)
def test_leaves_no_trace(update_running_stats):
    """new tensors, no graph, and the old averages as they were"""
    import torch
    mean, var = (torch.zeros(2), torch.ones(2))
    batch = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    result = update_running_stats(mean, var, batch)
    message = '`update_running_stats` returned None: replace the `...`'
    assert result is not None, message
    message = 'the tensors passed in must keep their values: compute new ones instead of changing them in place'
    assert torch.equal(mean, torch.zeros(2)) and torch.equal(var, torch.ones(2)), message
    message = "the averages still hang on the batch's graph, which grows with every step: compute them under no_grad"
    assert not result[0].requires_grad and (not result[1].requires_grad), message
