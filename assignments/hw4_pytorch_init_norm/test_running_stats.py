"""Hidden cases: the moving averages of batch normalization."""

import functools

import pytest
import torch

from assignments.hw4_pytorch_init_norm.inputs import normal
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("running_stats")


def one_step(nb, mean, var, a, momentum):
    """The averages after one step; with the default momentum for None."""
    if momentum is None:
        new_mean, new_var = nb.update_running_stats(mean, var, a)
    else:
        new_mean, new_var = nb.update_running_stats(mean, var, a, momentum)
    return {"mean": new_mean, "variance": new_var, "shapes": [list(new_mean.shape), list(new_var.shape)]}


def several_steps(nb, batches):
    """The averages after every step, fed back from zeros and ones."""
    mean = torch.zeros(batches[0].shape[1], dtype=batches[0].dtype)
    var = torch.ones_like(mean)
    history = []
    for a in batches:
        mean, var = nb.update_running_stats(mean, var, a)
        history.append([mean.clone(), var.clone()])
    return history


def arguments_after(nb, mean, var, a):
    """The arguments after the call, and whether a result shares memory with one."""
    given = [tensor.clone() for tensor in (mean, var, a)]
    results = nb.update_running_stats(*given)
    pointers = [tensor.data_ptr() for tensor in given]
    return {
        "running_mean, running_var, a after the call": given,
        "results are new tensors": all(result.data_ptr() not in pointers for result in results),
    }


def with_graph(nb, mean, var, a):
    """The results for a mini-batch that requires gradients."""
    a = (2.0 * a.clone().requires_grad_()) + 1.0
    new_mean, new_var = nb.update_running_stats(mean, var, a)
    return {
        "mean": new_mean,
        "variance": new_var,
        "requires_grad": [new_mean.requires_grad, new_var.requires_grad],
    }


def observed(nb, given):
    """One part per case."""
    return attempts(
        default_momentum=lambda: one_step(nb, *given["default_momentum"]),
        other_momentum=lambda: one_step(nb, *given["other_momentum"]),
        small_spread=lambda: one_step(nb, *given["small_spread"]),
        several_steps=lambda: several_steps(nb, given["several_steps"]),
        arguments_unchanged=lambda: arguments_after(nb, *given["arguments_unchanged"]),
        no_graph=lambda: with_graph(nb, *given["no_graph"]),
    )


@functools.cache
def given():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    mean, var = averages(420, 3)
    return {
        "default_momentum": [*averages(400, 4), normal(416, 6, 4, scale=2.0, offset=4.0), None],
        "other_momentum": [*averages(400, 3), normal(412, 2, 3, scale=2.0, offset=4.0), 0.3],
        "small_spread": [mean, 1e-6 * var, normal(422, 5, 3, scale=1e-3, offset=0.1), 0.5],
        "several_steps": [normal(430 + i, 8, 4, scale=3.0, offset=5.0) for i in range(5)],
        "arguments_unchanged": [*averages(440, 4), normal(442, 6, 4)],
        "no_graph": [*averages(450, 4), normal(452, 6, 4)],
    }


def averages(seed, columns, dtype=torch.float64):
    """Running averages as they may stand in the middle of training."""
    return normal(seed, columns, dtype=dtype), normal(seed + 1, columns, scale=0.3, dtype=dtype).exp()


@pytest.mark.points(1.5)
@pytest.mark.parametrize(
    "part",
    [
        pytest.param("default_momentum", id="default-momentum"),
        pytest.param("other_momentum", id="two-rows-other-momentum"),
    ],
)
def test_one_step(compare, part):
    """One step from averages in mid-training"""
    compare(observed, given(), part=part)


@pytest.mark.points(1)
def test_small_spread(compare):
    """A mini-batch whose variance is far below any eps"""
    compare(observed, given(), part="small_spread", rtol=1e-7, atol=1e-12)


@pytest.mark.points(1.5)
def test_several_steps(compare):
    """Five mini-batches in a row, starting from zeros and ones"""
    compare(observed, given(), part="several_steps")


@pytest.mark.points(1.25)
def test_arguments_unchanged(compare):
    """The old averages and the mini-batch are left as they were"""
    compare(observed, given(), part="arguments_unchanged")


@pytest.mark.points(1.25)
def test_no_graph(compare):
    """No graph is kept when the mini-batch comes from trainable layers"""
    compare(observed, given(), part="no_graph")
