"""Hidden cases: batch normalization as a module with two modes."""

import functools

import pytest
import torch
from torch import nn

from assignments.hw4_pytorch_init_norm.inputs import norm_inputs, normal
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("batch_norm_module")

OWN = ("batch_norm", "layer_norm", "rms_norm")


def built(nb, settings, state, dtype):
    """The student's module with the given scale, shift and, where given, running averages."""
    module = nb.BatchNorm(*settings).to(dtype)
    with torch.no_grad():
        module.weight.copy_(state[0])
        module.bias.copy_(state[1])
        if len(state) > 2:
            module.running_mean.copy_(state[2])
            module.running_var.copy_(state[3])
    return module


def training_outputs(nb, cases):
    """The output in training mode for each case."""
    found = []
    for settings, state, a in cases:
        out = built(nb, settings, state, a.dtype).train()(a)
        found.append({"output": out.detach(), "shape": list(out.shape), "dtype": str(out.dtype)})
    return found


def gradients(nb, settings, state, a, upstream, training):
    """Gradients of sum(upstream · output) with respect to the input and to the module's parameters."""
    module = built(nb, settings, state, a.dtype).train(training)
    a = a.clone().requires_grad_()
    module(a).backward(upstream)
    return {"gradient of a": a.grad, "gradient of weight": module.weight.grad, "gradient of bias": module.bias.grad}


def running(nb, settings, batches):
    """The running averages after every mini-batch, with the module as it is built."""
    module = nb.BatchNorm(*settings).train()
    history = []
    for a in batches:
        module(a)
        history.append({"mean": module.running_mean.clone(), "variance": module.running_var.clone()})
    return history


def evaluated(nb, settings, state, a):
    """The output in evaluation mode for all rows together, for the first one alone, and the averages after it."""
    module = built(nb, settings, state, a.dtype).eval()
    return {
        "output": module(a).detach(),
        "first row alone": module(a[:1]).detach(),
        "running mean after it": module.running_mean.detach().clone(),
        "running variance after it": module.running_var.detach().clone(),
    }


def there_and_back(nb, batches):
    """Training, evaluation, training: output and running mean in each mode."""
    module = nb.BatchNorm(batches[0].shape[1])
    seen = []
    for a, training in zip(batches, (True, False, True, False), strict=True):
        module.train(training)
        out = module(a)
        seen.append([out.detach().clone(), module.running_mean.detach().clone(), module.running_var.detach().clone()])
    return seen


def single_row(nb, settings, state, a):
    """What one row does in training mode, and the running averages after it."""
    module = built(nb, settings, state, a.dtype).train()
    try:
        module(a)
        outcome = "accepted"
    except Exception as error:
        outcome = "ValueError" if isinstance(error, ValueError) else type(error).__name__
    return {
        "one row while training": outcome,
        "running mean": module.running_mean.detach().clone(),
        "running variance": module.running_var.detach().clone(),
    }


def registered(nb, features):
    """What a new module holds: the state that is saved, and which part of it is trained."""
    module = nb.BatchNorm(features)
    saved = module.state_dict()
    names = ("weight", "bias", "running_mean", "running_var")
    return {
        "missing from the state_dict": [name for name in names if name not in saved],
        "state": {name: saved[name] for name in names if name in saved},
        "shapes": {name: list(saved[name].shape) for name in names if name in saved},
        "parameters": sorted(name for name, _ in module.named_parameters()),
        "trained": sorted(name for name, parameter in module.named_parameters() if parameter.requires_grad),
        "is a module": isinstance(module, nn.Module),
    }


def saved_and_loaded(nb, batches, a):
    """A trained module's state loaded into a new one: the new one's output in evaluation mode."""
    module = nb.BatchNorm(a.shape[1]).train()
    for batch in batches:
        module(batch)
    other = nb.BatchNorm(a.shape[1])
    other.load_state_dict(module.state_dict())
    return other.eval()(a).detach()


def graph_kept(nb, batches):
    """Whether the running averages hold on to the graph of trainable inputs, and what they are."""
    module = nb.BatchNorm(batches[0].shape[1]).train()
    for a in batches:
        module(a.clone().requires_grad_())
    return {
        "requires_grad": [module.running_mean.requires_grad, module.running_var.requires_grad],
        "running mean": module.running_mean.detach().clone(),
        "running variance": module.running_var.detach().clone(),
    }


def while_training(nb, given):
    """One part per case of training mode alone."""
    return attempts(
        output=lambda: training_outputs(nb, given["output"]),
        gradients=lambda: gradients(nb, *given["gradients"], True),
        running_averages=lambda: running(nb, *given["running_averages"]),
        other_momentum=lambda: running(nb, *given["other_momentum"]),
    )


def while_evaluating(nb, given):
    """One part per case of evaluation mode alone."""
    return attempts(
        output=lambda: evaluated(nb, *given["output"]),
        gradients=lambda: gradients(nb, *given["gradients"], False),
    )


def after_training(nb, given):
    """One part per case of what training leaves behind."""
    return attempts(
        saved_and_loaded=lambda: saved_and_loaded(nb, *given["saved_and_loaded"]),
        no_graph=lambda: graph_kept(nb, given["no_graph"]),
    )


@functools.cache
def training_inputs():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    several = [[5, 0.1], state(500, 5)[:2], normal(505, 7, 5, scale=0.4, offset=1.0)]
    single = [[1], state(507, 1, torch.float32)[:2], normal(506, 4, 1, offset=2.0, dtype=torch.float32)]
    return {
        "output": [several, single],
        "gradients": [[4], state(510, 4)[:2], normal(515, 8, 4, scale=2.0, offset=1.0), normal(516, 8, 4)],
        "running_averages": [[4], batches(520, 4, 6, 4)],
        "other_momentum": [[3, 1e-5, 0.3], batches(530, 3, 2, 3)],
    }


@functools.cache
def evaluation_inputs():
    """The inputs of each part."""
    return {
        "output": [[4, 0.1], state(540, 4), normal(545, 6, 4, scale=0.5, offset=1.0)],
        "gradients": [[4, 0.1], state(550, 4), normal(555, 5, 4, scale=2.0, offset=1.0), normal(556, 5, 4)],
    }


@functools.cache
def inputs_after_training():
    """The inputs of each part."""
    return {
        "saved_and_loaded": [batches(580, 3, 6, 4), batches(585, 1, 3, 4)[0]],
        "no_graph": batches(590, 3, 6, 4),
    }


def state(seed, columns, dtype=torch.float64):
    """Scale, shift, running mean and running variance, all random."""
    _, gamma, beta = norm_inputs(seed, 1, columns, dtype=dtype)
    return [
        gamma,
        beta,
        normal(seed + 3, columns, dtype=dtype),
        normal(seed + 4, columns, scale=0.5, dtype=dtype).exp(),
    ]


def batches(seed, count, rows, columns):
    """Mini-batches in single precision with mean 5 and standard deviation 3."""
    return [normal(seed + i, rows, columns, scale=3.0, offset=5.0, dtype=torch.float32) for i in range(count)]


@pytest.mark.points(1)
def test_training_output(compare):
    """Training mode: values with a random scale and shift and a large eps"""
    compare(while_training, training_inputs(), part="output", forbid=OWN)


@pytest.mark.points(1.5)
def test_training_gradients(compare):
    """Training mode: gradients with respect to the input, the scale and the shift"""
    compare(while_training, training_inputs(), part="gradients", forbid=OWN)


@pytest.mark.points(1.5)
def test_running_averages(compare):
    """Training mode: the running averages after each of four mini-batches"""
    compare(while_training, training_inputs(), part="running_averages", forbid=OWN)


@pytest.mark.points(1)
def test_other_momentum(compare):
    """Training mode: the running averages with another momentum and mini-batches of two rows"""
    compare(while_training, training_inputs(), part="other_momentum", forbid=OWN)


@pytest.mark.points(2)
def test_evaluation(compare):
    """Evaluation mode: values for many rows and for one, and running averages that stay as they are"""
    compare(while_evaluating, evaluation_inputs(), part="output", forbid=OWN)


@pytest.mark.points(0.75)
def test_evaluation_gradients(compare):
    """Evaluation mode: gradients with respect to the input, the scale and the shift"""
    compare(while_evaluating, evaluation_inputs(), part="gradients", forbid=OWN)


@pytest.mark.points(1)
def test_there_and_back(compare):
    """From training to evaluation and back"""
    compare(there_and_back, batches(560, 4, 5, 3), atol=1e-5, forbid=OWN)


@pytest.mark.points(1)
def test_single_row(compare):
    """A single row in training mode is refused, and nothing is updated"""
    compare(single_row, [4], state(570, 4), normal(575, 1, 4))


@pytest.mark.points(1)
def test_state_dict(compare):
    """Parameters and buffers of a new module: names, shapes, starting values"""
    compare(registered, 3)


@pytest.mark.points(0.75)
def test_saved_and_loaded(compare):
    """The running averages are saved and loaded with the state_dict"""
    compare(after_training, inputs_after_training(), part="saved_and_loaded", atol=1e-5)


@pytest.mark.points(0.5)
def test_no_graph(compare):
    """The running averages hold no graph"""
    compare(after_training, inputs_after_training(), part="no_graph", atol=1e-5)
