"""Hidden cases: training. Outcomes are judged by predictions for points whose labels stay here."""

import functools

import pytest
import torch
from torch import nn

from assignments.hw4_pytorch_init_norm.bands import band
from assignments.hw4_pytorch_init_norm.inputs import moons, normal
from autograder.authoring import require
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("training")

FRESH_POINTS = 4000
SEED = 189


def recorder(weight, bias):
    """A linear classifier with the given weights that notes the mode and the rows of every call."""

    class Recorder(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(weight.shape[1], 1).to(weight.dtype)
            with torch.no_grad():
                self.linear.weight.copy_(weight)
                self.linear.bias.copy_(bias)
            self.calls = []

        def forward(self, x):
            self.calls.append((self.training, x.detach().clone()))
            return self.linear(x)

    return Recorder()


def full_batch(nb, weight, bias, x, t, epochs, lr):
    """Losses and final weights when every epoch is a single step on all the data."""
    model = recorder(weight, bias)
    losses = nb.train_classifier(model, x, t, epochs, lr, len(x), torch.Generator().manual_seed(0))
    return {
        "loss of each epoch": [float(loss) for loss in losses],
        "weight": model.linear.weight.detach(),
        "bias": model.linear.bias.detach(),
    }


def epochs_seen(nb, weight, bias, x, t, epochs, batch_size, seed):
    """How the data were used: sizes of the mini-batches, rows per epoch, order from epoch to epoch."""
    model = recorder(weight, bias)
    nb.train_classifier(model, x, t, epochs, 0.1, batch_size, torch.Generator().manual_seed(seed))
    sizes = [len(rows) for _, rows in model.calls]
    seen = torch.cat([rows for _, rows in model.calls])
    complete = len(seen) == epochs * len(x)
    orders = list(seen.split(len(x))) if complete else []
    repeat = recorder(weight, bias)
    nb.train_classifier(repeat, x, t, epochs, 0.1, batch_size, torch.Generator().manual_seed(seed))
    return {
        "mini-batch sizes": sizes,
        "every row once per epoch": complete
        and all(torch.equal(order[:, 0].sort().values, x[:, 0].sort().values) for order in orders),
        "shuffled": all(not torch.equal(order, x) for order in orders),
        "another order in every epoch": not any(
            torch.equal(orders[i], orders[j]) for i in range(len(orders)) for j in range(i)
        ),
        "equal generators give equal results": torch.equal(repeat.linear.weight, model.linear.weight),
    }


def losses_without_steps(nb, weight, bias, x, t, epochs, batch_size):
    """The reported losses when the learning rate is zero."""
    model = recorder(weight, bias)
    losses = nb.train_classifier(model, x, t, epochs, 0.0, batch_size, torch.Generator().manual_seed(0))
    return {"loss of each epoch": [float(loss) for loss in losses]}


def traces(nb, weight, bias, x, t, batch_size):
    """The mode in every call and at the end, for a model that comes in evaluation mode; and the data afterwards."""
    model = recorder(weight, bias).eval()
    inputs, targets = x.clone(), t.clone()
    losses = nb.train_classifier(model, inputs, targets, 2, 0.1, batch_size, torch.Generator().manual_seed(0))
    return {
        "always in training mode": all(training for training, _ in model.calls),
        "left in training mode": model.training,
        "inputs and targets after training": [inputs, targets],
        "a graph is kept in the losses": any(getattr(loss, "requires_grad", False) for loss in losses),
    }


def observed(nb, given):
    """One part per case that looks at the loop itself."""
    return attempts(
        full_batch=lambda: full_batch(nb, *given["full_batch"]),
        epochs=lambda: epochs_seen(nb, *given["epochs"]),
        mean_loss=lambda: losses_without_steps(nb, *given["mean_loss"]),
        traces=lambda: traces(nb, *given["traces"]),
    )


def trained_answers(nb, norm, init, x, t, points, settings, seed):
    """Logits of a deep tanh network for fresh points, after training by the student's own functions."""
    torch.manual_seed(seed)
    model = nb.NormMLP([2] + [settings["width"]] * settings["hidden layers"] + [1], activation="tanh", norm=norm)
    if init is not None:
        with torch.no_grad():
            for layer in model.layers:
                getattr(nb, init)(layer.weight)
                layer.bias.zero_()
    generator = torch.Generator().manual_seed(seed)
    nb.train_classifier(model, x, t, settings["epochs"], settings["lr"], settings["batch size"], generator)
    model.eval()
    with torch.no_grad():
        return model(points).reshape(-1)


def outcome_inputs():
    """Training data, fresh points and settings of the training outcomes."""
    x, t = moons(640, 1)
    points, _ = moons(FRESH_POINTS, 2)
    settings = {"hidden layers": 14, "width": 32, "epochs": 20, "lr": 0.01, "batch size": 64}
    return x, t, points, settings


def accuracy(logits):
    """Share of the fresh points that the logits put on the right side."""
    _, labels = moons(FRESH_POINTS, 2)
    is_row = isinstance(logits, torch.Tensor) and logits.shape == (FRESH_POINTS,)
    require(is_row, "The trained network must return one logit for each point.")
    return float(((logits.reshape(-1) > 0) == (labels.reshape(-1) > 0.5)).double().mean())


def start(rows, seed=900):
    """A small classification problem in double precision and the weights of a linear classifier."""
    x = normal(seed, rows, 3, scale=2.0, offset=0.5)
    t = (x.sum(dim=1, keepdim=True) + normal(seed + 1, rows, 1) > 1.0).to(x.dtype)
    return normal(seed + 2, 1, 3), normal(seed + 3, 1), x, t


@functools.cache
def given():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    return {
        "full_batch": [*start(11), 3, 0.7],
        "epochs": [*start(19, 910), 3, 8, 3],
        "mean_loss": [*start(19, 920), 2, 8],
        "traces": [*start(12, 930), 6],
    }


@pytest.mark.points(1.25)
def test_full_batch(compare):
    """Three epochs of one step each: losses and weights"""
    compare(observed, given(), part="full_batch")


@pytest.mark.points(0.75)
def test_epochs(compare):
    """Mini-batches: every data point once per epoch, in a new order every time"""
    compare(observed, given(), part="epochs")


@pytest.mark.points(0.5)
def test_mean_loss(compare):
    """With a learning rate of zero every epoch reports the mean loss of all the data, whatever the mini-batches"""
    compare(observed, given(), part="mean_loss")


@pytest.mark.points(0.5)
def test_traces(compare):
    """Training mode throughout; the data are left as they were"""
    compare(observed, given(), part="traces")


@pytest.mark.points(0.5)
@pytest.mark.limit(seconds=10)
def test_without_normalization(observe):
    """Deep tanh network without normalization, PyTorch's default weights: nothing is learned"""
    x, t, points, settings = outcome_inputs()
    share = accuracy(observe(trained_answers, "none", None, x, t, points, settings, SEED))
    low, high = band("accuracy.none")
    require(
        low <= share <= high,
        "With PyTorch's default weights and no normalization the signal dies out on the way through so many tanh "
        "layers, and plain SGD should get nowhere in these few epochs. Yours does: check that the layers keep "
        "PyTorch's own initialization, that nothing is normalized, and that the optimizer is plain SGD.",
        f"held-out accuracy {share:.4f}, band [{low}, {high}]",
    )


@pytest.mark.points(0.75)
@pytest.mark.limit(seconds=10)
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_with_normalization(observe, norm):
    """The same network with normalization learns"""
    x, t, points, settings = outcome_inputs()
    share = accuracy(observe(trained_answers, norm, None, x, t, points, settings, SEED))
    low, high = band(f"accuracy.{norm}")
    require(
        low <= share <= high,
        "The trained network does not predict fresh points (in evaluation mode) as well as it should. If the training "
        "loss fell all the same, look at what differs between the two modes; if it did not, at the training loop.",
        f"held-out accuracy {share:.4f}, band [{low}, {high}]",
    )


@pytest.mark.points(0.5)
@pytest.mark.limit(seconds=10)
def test_with_xavier(observe):
    """Without normalization, but started from your Xavier weights, it learns"""
    x, t, points, settings = outcome_inputs()
    share = accuracy(observe(trained_answers, "none", "xavier_normal", x, t, points, settings, SEED))
    low, high = band("accuracy.xavier")
    require(
        low <= share <= high,
        "Weights of the right spread carry the signal through the tanh layers, so that even without normalization the "
        "network learns. Yours does not predict fresh points as well as it should: look at `xavier_normal`, then at "
        "the training loop.",
        f"held-out accuracy {share:.4f}, band [{low}, {high}]",
    )


@pytest.mark.points(0.5)
@pytest.mark.limit(seconds=10)
def test_normalization_helps(observe):
    """With either normalization far more of the fresh points are right than without"""
    x, t, points, settings = outcome_inputs()
    without, batch, layer = (
        accuracy(observe(trained_answers, norm, None, x, t, points, settings, SEED))
        for norm in ("none", "batch", "layer")
    )
    require(
        min(batch, layer) > without + 0.1,
        "The point of the exercise: normalization should make the difference between guessing and learning.",
        f"held-out accuracy: none {without:.4f}, batch {batch:.4f}, layer {layer:.4f}",
    )
