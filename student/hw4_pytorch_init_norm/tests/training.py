from otter.test_files import test_case

OK_FORMAT = False

name = "training"
points = None

@test_case(name='one step, by hand', points=None, hidden=False)
def test_one_step(train_classifier):
    """one step, by hand"""
    import torch
    model = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    losses = train_classifier(model, torch.ones(2, 1), torch.ones(2, 1), n_epochs=1, lr=1.0, batch_size=2)
    message = '`train_classifier` returned None: replace the `...`'
    assert losses is not None, message
    message = f'one epoch should give a list with one loss, not {losses!r}'
    assert isinstance(losses, list) and len(losses) == 1, message
    message = f'with all logits 0 the mean loss is ln 2 = 0.6931, whatever the targets; yours is {losses[0]:.4f}'
    assert abs(losses[0] - 0.6931) < 0.001, message
    message = f'the sigmoid of 0 is 0.5 and the target 1, so the gradient of the weight is -0.5 and one step with learning rate 1 leads from 0 to 0.5; yours led to {model.weight.item():.4f}. (1.0 means that the loss is summed, not averaged.)'
    assert abs(model.weight.item() - 0.5) < 0.0001, message

@test_case(name='the gradient of one step does not leak into the next', points=None, hidden=False)
def test_gradients_cleared(train_classifier):
    """the gradient of one step does not leak into the next"""
    import torch
    model = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    losses = train_classifier(model, torch.ones(2, 1), torch.ones(2, 1), n_epochs=2, lr=1.0, batch_size=2)
    message = '`train_classifier` returned None: replace the `...`'
    assert losses is not None, message
    message = f'after one step weight and bias are 0.5, the logit is 1 and the gradient -0.269, so the weight goes on to 0.769; yours is {model.weight.item():.4f}. (1.269 means that the first gradient was still there.)'
    assert abs(model.weight.item() - 0.769) < 0.001, message

@test_case(name='every data point once per epoch, in a new order', points=None, hidden=False)
def test_every_point_once(train_classifier):
    """every data point once per epoch, in a new order"""
    import torch

    class Recorder(torch.nn.Linear):

        def forward(self, x):
            seen.append(x.flatten().tolist())
            return super().forward(x)
    seen = []
    model = Recorder(1, 1).eval()
    x, t = (torch.arange(10.0).reshape(10, 1), torch.ones(10, 1))
    losses = train_classifier(model, x, t, n_epochs=2, lr=0.0, batch_size=4)
    message = '`train_classifier` returned None: replace the `...`'
    assert losses is not None, message
    sizes = [len(rows) for rows in seen]
    message = f'ten data points make batches of 4, 4 and 2 in each of the two epochs; yours were {sizes}'
    assert sizes == [4, 4, 2, 4, 4, 2], message
    first, second = (sum(seen[:3], []), sum(seen[3:], []))
    message = 'in each epoch every data point should be used exactly once'
    assert sorted(first) == sorted(second) == list(range(10)), message
    message = 'the order was the same in both epochs: shuffle anew in each'
    assert first != second, message
    message = 'the model came in evaluation mode and should be put into training mode'
    assert model.training, message
