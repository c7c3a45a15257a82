# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Starting right: initialization and normalization
#
# A deep network is a long chain of multiplications. If every link makes the signal a little larger, it explodes
# before it reaches the output; if every link makes it a little smaller, nothing arrives, and no gradient comes back.
# This notebook is about the two habits that keep the chain healthy: choosing the **initial weights** at the right
# scale, and **normalizing** inside the network, so that the scale stays right while the weights change.
#
# You will write both from their formulas: the initializers of He and Xavier, a table that follows a signal through
# thirty layers, batch normalization with its running averages, layer normalization and RMSNorm. At the end you train
# a network of twenty hidden layers that learns nothing at all without normalization.
#
# **How to work.** Run the cells in order. Replace each `...` with your code; the docstring above it says exactly what
# is wanted: shapes, which variance, where $\epsilon$ goes. Then run the check below it. A check that fails tells you
# where to look. The checks use examples that you can work out on paper, and they do not cover everything: your mark
# is decided by further cases on other inputs, which also look at gradients, data types, and at what your functions
# leave untouched. Each question is graded on its own: one left open costs its own points and those of what you build
# on it, no others.
#
# **Conventions.** A mini-batch is a matrix with one data point per row: $K$ rows, $M$ columns (units). A layer's
# weight matrix has shape (outputs, inputs) $= (M_\text{out}, M_\text{in})$, as in PyTorch.
#
# **References**
#
# - C. M. Bishop and H. Bishop, *Deep Learning: Foundations and Concepts*, Springer, 2024. Sections 7.2.5 and 7.4.
# - X. Glorot and Y. Bengio, *Understanding the difficulty of training deep feedforward neural networks*, AISTATS 2010.
# - K. He, X. Zhang, S. Ren and J. Sun, *Delving deep into rectifiers*, ICCV 2015.
# - S. Ioffe and C. Szegedy, *Batch normalization*, ICML 2015.
# - J. L. Ba, J. R. Kiros and G. E. Hinton, *Layer normalization*, 2016.
# - B. Zhang and R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.

# %% [markdown]
# ## Setting up

# %%
import inspect
import math
import re
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn

# %% [markdown]
# The demonstrations between the questions use what you have written. The helper below lets a demonstration wait
# quietly for a question that is still open; nothing in it is graded.


# %%
def is_written(name):
    """Whether a function or class of this notebook exists and has no line left that is just `...`."""
    thing = globals().get(name)
    if thing is None:
        return False
    functions = vars(thing).values() if inspect.isclass(thing) else [thing]
    for function in filter(inspect.isfunction, functions):
        try:
            source = inspect.getsource(function)
        except OSError:
            continue
        if re.search(r"^\s*\.\.\.\s*$", source, flags=re.MULTILINE):
            return False
    return True


def ready(*names):
    """True if everything named is written; otherwise prints what a demonstration is waiting for."""
    missing = [name for name in names if not is_written(name)]
    if missing:
        print(f"This demonstration needs {', '.join(missing)}: come back and run this cell again when that is written.")
    return not missing


# %% [markdown]
# ## Part A: Initialization
#
# ### The variance of a pre-activation
#
# Unit $i$ of a layer adds up $M$ products, $a_i = \sum_{j=1}^{M} w_{ij} z_j$. Draw the weights independently of each
# other and of the inputs, with mean zero and variance $\sigma_w^2$. The products are then uncorrelated and have mean
# zero, so their variances add:
#
# $$ \operatorname{var}[a_i] = \sum_{j=1}^{M} \mathbb{E}[w_{ij}^2]\,\mathbb{E}[z_j^2] = M \sigma_w^2\, \mathbb{E}[z^2]. $$
#
# It is the second moment $\mathbb{E}[z^2]$ that counts, not the variance of $z$: the outputs of a ReLU are never
# negative and their mean is not zero. What remains is to say how $\mathbb{E}[z^2]$ follows from the previous layer's
# pre-activations, and that depends on the activation function.

# %% [raw]
# # BEGIN QUESTION
# name: he_init

# %% [markdown]
# ### Question 1: He initialization ({points:he_init} points)
#
# A ReLU sets negative pre-activations to zero. If they are distributed symmetrically about zero, exactly half of the
# second moment goes with them: $\mathbb{E}[z^2] = \tfrac{1}{2} \operatorname{var}[a]$ of the layer before. Each layer
# then multiplies the variance by $\tfrac{1}{2} M \sigma_w^2$. This factor is one if
#
# $$ \sigma_w^2 = \frac{2}{M_\text{in}}, $$
#
# where $M_\text{in}$, the *fan-in*, is the number of inputs of each unit (He et al., 2015). Only the variance matters
# to this argument, not the shape of the distribution, so a uniform distribution does as well: on $[-b, b]$ it has
# variance $b^2/3$.
#
# Write both versions. They fill a tensor that exists already, as a layer's weight does, and return it.

# %%
# include: he_normal

# %%
# include: he_uniform

# %% [raw]
# # BEGIN TESTS


# %%
def test_fills_in_place(he_normal, he_uniform):
    """the tensor itself is filled and returned"""
    import torch

    for name, fill in {"he_normal": he_normal, "he_uniform": he_uniform}.items():
        weight = torch.zeros(3, 5)
        result = fill(weight)
        message = f"`{name}` returned None: replace the `...`, and end with a `return` of the tensor"
        assert result is not None, message
        message = f"`{name}` must return the very tensor it was given, overwritten in place, not a new one"
        assert result is weight, message
        message = f"`{name}` left entries of the tensor at zero"
        assert weight.count_nonzero() == weight.numel(), message


# %%
def test_normal_spread(he_normal):
    """he_normal has the right spread"""
    import torch

    weight = he_normal(torch.empty(200, 800))
    message = "`he_normal` returned None: replace the `...`"
    assert weight is not None, message
    spread = weight.std().item()
    message = (
        "a (200, 800) weight has fan-in 800, so the standard deviation is the root of 2/800, which is 0.05; "
        f"yours is {spread:.4f}. Which axis is the fan-in? Does `normal_` take the variance or the standard deviation?"
    )
    assert abs(spread - 0.05) < 0.001, message


# %%
def test_uniform_bound(he_uniform):
    """he_uniform stays within the right bound"""
    import torch

    weight = he_uniform(torch.empty(200, 600))
    message = "`he_uniform` returned None: replace the `...`"
    assert weight is not None, message
    largest = weight.abs().max().item()
    message = (
        "a (200, 600) weight needs variance 2/600; solving b²/3 = 2/600 gives b = 0.1, but your largest entry "
        f"is {largest:.4f}. Did you take the standard deviation for the bound?"
    )
    assert 0.099 < largest <= 0.1 + 1e-6, message


# %%
def test_generator(he_normal, he_uniform):
    """a generator passed in decides the draws"""
    import torch

    for name, fill in {"he_normal": he_normal, "he_uniform": he_uniform}.items():
        first, second = (fill(torch.zeros(3, 5), generator=torch.Generator().manual_seed(4)) for _ in range(2))
        message = f"`{name}` returned None: replace the `...`"
        assert first is not None, message
        message = f"`{name}` drew different values from two generators with the same seed: pass `generator` on"
        assert torch.equal(first, second), message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: xavier_init

# %% [markdown]
# ### Question 2: Xavier initialization ({points:xavier_init} points)
#
# Around zero $\tanh(a) \approx a$, so as long as the pre-activations stay small $\mathbb{E}[z^2] \approx
# \operatorname{var}[a]$, and the signal keeps its size on the way forward if $\sigma_w^2 = 1/M_\text{in}$. Gradients
# travel the other way, through the transposed matrix, and the same argument asks for $\sigma_w^2 = 1/M_\text{out}$.
# Both cannot hold unless the layer is square. Glorot and Bengio (2010) settle in between:
#
# $$ \sigma_w^2 = \frac{2}{M_\text{in} + M_\text{out}}. $$
#
# Write the normal and the uniform version, without any further gain.

# %%
# include: xavier_normal

# %%
# include: xavier_uniform

# %% [raw]
# # BEGIN TESTS


# %%
def test_fills_in_place(xavier_normal, xavier_uniform):
    """the tensor itself is filled and returned"""
    import torch

    for name, fill in {"xavier_normal": xavier_normal, "xavier_uniform": xavier_uniform}.items():
        weight = torch.zeros(3, 5)
        result = fill(weight)
        message = f"`{name}` returned None: replace the `...`, and end with a `return` of the tensor"
        assert result is not None, message
        message = f"`{name}` must return the very tensor it was given, overwritten in place, not a new one"
        assert result is weight, message
        message = f"`{name}` left entries of the tensor at zero"
        assert weight.count_nonzero() == weight.numel(), message


# %%
def test_normal_spread(xavier_normal):
    """xavier_normal has the right spread"""
    import torch

    weight = xavier_normal(torch.empty(300, 500))
    message = "`xavier_normal` returned None: replace the `...`"
    assert weight is not None, message
    spread = weight.std().item()
    message = (
        "a (300, 500) weight has fan-in 500 and fan-out 300, so the standard deviation is the root of 2/800, "
        f"which is 0.05; yours is {spread:.4f}"
    )
    assert abs(spread - 0.05) < 0.001, message


# %%
def test_uniform_bound(xavier_uniform):
    """xavier_uniform stays within the right bound"""
    import torch

    weight = xavier_uniform(torch.empty(200, 400))
    message = "`xavier_uniform` returned None: replace the `...`"
    assert weight is not None, message
    largest = weight.abs().max().item()
    message = (
        "a (200, 400) weight needs variance 2/600; solving b²/3 = 2/600 gives b = 0.1, "
        f"but your largest entry is {largest:.4f}"
    )
    assert 0.099 < largest <= 0.1 + 1e-6, message


# %%
def test_parameter(xavier_normal, xavier_uniform):
    """the weight of a layer can be filled, and still be trained"""
    import torch

    for name, fill in {"xavier_normal": xavier_normal, "xavier_uniform": xavier_uniform}.items():
        weight = torch.nn.Linear(4, 3).weight
        result = fill(weight)
        message = f"`{name}` returned None: replace the `...`"
        assert result is not None, message
        message = f"after `{name}` the weight should still require gradients, and the filling should not be recorded"
        assert weight.requires_grad and weight.grad_fn is None, message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: preactivation_stds

# %% [markdown]
# ### Question 3: Following a signal through the layers ({points:preactivation_stds} points)
#
# The formulas speak of averages over all possible weights. To see what happens in one particular network, send a
# batch of inputs through it and write down how large the pre-activations are in each layer.

# %%
# include: preactivation_stds

# %% [raw]
# # BEGIN TESTS


# %%
def test_one_layer(preactivation_stds):
    """one layer, by hand, before the activation"""
    import math
    import torch

    stds = preactivation_stds([torch.tensor([[1.0]])], torch.tensor([[-1.0], [1.0]]), torch.relu)
    message = "`preactivation_stds` returned None: replace the `...`"
    assert stds is not None, message
    message = f"one weight matrix should give a list with one number, not {stds!r}"
    assert isinstance(stds, list) and len(stds) == 1, message
    message = (
        "weight 1 and inputs -1, 1: the pre-activations are -1, 1 and their sample standard deviation is the root "
        f"of 2; yours is {float(stds[0]):.4f}. (1 comes from dividing by n, 0.7071 from measuring after the ReLU.)"
    )
    assert math.isclose(stds[0], math.sqrt(2), rel_tol=1e-5), message


# %%
def test_two_layers(preactivation_stds):
    """the second layer sees what the activation lets through"""
    import math
    import torch

    weights = [torch.tensor([[1.0]]), torch.tensor([[3.0]])]
    stds = preactivation_stds(weights, torch.tensor([[-1.0], [1.0]]), torch.relu)
    message = "`preactivation_stds` returned None: replace the `...`"
    assert stds is not None, message
    message = f"two weight matrices should give two numbers, got {len(stds)}; the inputs are not an entry"
    assert len(stds) == 2, message
    message = (
        "ReLU turns -1, 1 into 0, 1 and the weight 3 makes that 0, 3, with standard deviation 3 over the root of 2 "
        f"(2.1213); yours is {float(stds[1]):.4f}"
    )
    assert math.isclose(stds[1], 3 / math.sqrt(2), rel_tol=1e-5), message


# %%
def test_shapes(preactivation_stds):
    """layers of different widths; plain numbers come back"""
    import torch

    weights = [torch.ones(5, 3), torch.ones(2, 5, requires_grad=True)]
    stds = preactivation_stds(weights, torch.arange(12.0).reshape(4, 3), torch.tanh)
    message = "`preactivation_stds` returned None: replace the `...`"
    assert stds is not None, message
    message = "the entries should be plain Python floats: `.item()` takes a number out of a tensor"
    assert all(type(std) is float for std in stds), message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ### Demonstration: thirty layers
#
# Now compare four ways to choose the weights of a network with thirty layers of width 256: two fixed scales, one too
# large and one too small, against Xavier and He. Mind the vertical axis: each grid line is a factor of $10^{10}$.

# %% tags=["otter_ignore"]
if ready("he_normal", "xavier_normal", "preactivation_stds"):
    depth, width = 30, 256
    inputs = torch.randn(500, width, generator=torch.Generator().manual_seed(1))
    fillings = {
        "standard deviation 1": lambda weight: weight.normal_(0.0, 1.0),
        "standard deviation 0.01": lambda weight: weight.normal_(0.0, 0.01),
        "Xavier": xavier_normal,
        "He": he_normal,
    }
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for panel, activation in zip(panels, (torch.tanh, torch.relu)):
        for name, fill in fillings.items():
            torch.manual_seed(2)
            matrices = [fill(torch.empty(width, width)) for _ in range(depth)]
            panel.semilogy(range(1, depth + 1), preactivation_stds(matrices, inputs, activation), label=name, lw=2)
        panel.set(title=activation.__name__, xlabel="layer", ylim=(1e-32, 1e34), yticks=10.0 ** np.arange(-30, 31, 10))
        panel.grid(alpha=0.4)
    panels[0].set_ylabel("std of the pre-activations")
    panels[0].legend(loc="lower left")
    plt.show()

# %% [markdown]
# With standard deviation 1 the factor per layer is $\sqrt{256/2} \approx 11$ under ReLU, and thirty of these factors
# make more than $10^{30}$. Under tanh the curve looks harmless, yet almost every unit sits on the flat part of the
# function, where its derivative is nearly zero: the signal arrives, but no gradient returns. With 0.01 the signal
# shrinks by a factor of six or more in every layer until nothing is left. At this scale the other two look alike, so
# look closer.

# %% tags=["otter_ignore"]
if ready("he_normal", "xavier_normal", "preactivation_stds"):
    figure, panels = plt.subplots(1, 2, figsize=(11, 3.5), sharey=True, layout="constrained")
    for panel, activation in zip(panels, (torch.tanh, torch.relu)):
        for name, fill, color in (("Xavier", xavier_normal, "C2"), ("He", he_normal, "C3")):
            torch.manual_seed(2)
            matrices = [fill(torch.empty(width, width)) for _ in range(depth)]
            stds = preactivation_stds(matrices, inputs, activation)
            panel.semilogy(range(1, depth + 1), stds, label=name, color=color, lw=2)
        panel.set(title=activation.__name__, xlabel="layer")
        panel.grid(alpha=0.4)
    panels[0].set_ylabel("std of the pre-activations")
    panels[1].legend(loc="lower left")
    plt.show()

# %% [markdown]
# He and ReLU belong together: the curve wanders, because 256 units are not infinitely many, but has no direction.
# Xavier under ReLU loses a factor of $\sqrt{2}$ in every layer. Under tanh Xavier fades slowly, since $|\tanh(a)|$ is
# always a little less than $|a|$, while He's larger weights push against that until the two balance.

# %% [markdown]
# ## Part B: Normalization
#
# A good start does not last: every gradient step moves the weights, and with them the scale of everything downstream.
# Normalization layers measure that scale as they go and divide it out. They differ in *what* they measure: batch
# normalization looks down a column, over the data points; layer normalization and RMSNorm look along a row, over the
# units.

# %% [raw]
# # BEGIN QUESTION
# name: batch_norm

# %% [markdown]
# ### Question 4: Batch normalization ({points:batch_norm} points)
#
# For each unit $i$ separately, over the $K$ rows of the mini-batch (Ioffe and Szegedy, 2015):
#
# $$ \mu_i = \frac{1}{K} \sum_{n=1}^{K} a_{ni}, \qquad \sigma_i^2 = \frac{1}{K} \sum_{n=1}^{K} (a_{ni} - \mu_i)^2, \qquad
# y_{ni} = \gamma_i\, \frac{a_{ni} - \mu_i}{\sqrt{\sigma_i^2 + \epsilon}} + \beta_i. $$
#
# The small constant $\epsilon$ guards against division by zero. The parameters $\gamma_i$ and $\beta_i$ are learned:
# they hand back to the network the freedom to choose a scale and a shift, which the normalization has just taken
# away.
#
# $\mu_i$ and $\sigma_i^2$ are functions of the batch, and the gradient has to pass through them too. Autograd does
# this for you, unless you keep it from doing so.

# %%
# include: batch_norm

# %% [raw]
# # BEGIN TESTS


# %%
def test_one_column(batch_norm):
    """one column, by hand"""
    import torch

    out = batch_norm(torch.tensor([[1.0], [3.0]]), torch.ones(1), torch.zeros(1), eps=0.0)
    message = "`batch_norm` returned None: replace the `...`"
    assert out is not None, message
    message = f"the result should have the shape of the input, (2, 1), not {tuple(out.shape)}"
    assert out.shape == (2, 1), message
    message = (
        "the column 1, 3 has mean 2 and biased variance 1, so it becomes -1, 1; "
        f"yours became {out[0, 0]:.4f}, {out[1, 0]:.4f}. (0.7071 comes from dividing by K - 1.)"
    )
    assert torch.allclose(out, torch.tensor([[-1.0], [1.0]])), message


# %%
def test_each_column(batch_norm):
    """each column on its own, with its own gamma and beta"""
    import torch

    a = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    out = batch_norm(a, torch.tensor([2.0, 0.5]), torch.tensor([0.0, 1.0]), eps=0.0)
    message = "`batch_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "both columns of [[1, 10], [3, 30]] normalize to -1, 1. Scaled by 2 and 0.5, then shifted by 0 and 1, "
        f"they are -2, 2 and 0.5, 1.5; yours are {out[:, 0].tolist()} and {out[:, 1].tolist()}"
    )
    assert torch.allclose(out, torch.tensor([[-2.0, 0.5], [2.0, 1.5]])), message


# %%
def test_eps(batch_norm):
    """eps stands inside the square root"""
    import torch

    out = batch_norm(torch.tensor([[-1.0], [1.0]]), torch.ones(1), torch.zeros(1), eps=3.0)
    message = "`batch_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "the column -1, 1 has variance 1; with eps = 3 it is divided by the root of 1 + 3, which gives -0.5, 0.5; "
        f"yours gave {out[0, 0]:.4f}, {out[1, 0]:.4f}"
    )
    assert torch.allclose(out, torch.tensor([[-0.5], [0.5]])), message


# %%
def test_gradient(batch_norm):
    """the gradient passes through the mean and the variance"""
    import torch

    a = torch.tensor([[1.0], [2.0], [6.0]], requires_grad=True)
    gamma, beta = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    out = batch_norm(a, gamma, beta)
    message = "`batch_norm` returned None: replace the `...`"
    assert out is not None, message
    out[0].sum().backward()
    message = "no gradient arrived at a, gamma or beta: do not detach anything, and do not use no_grad here"
    assert a.grad is not None and gamma.grad is not None and beta.grad is not None, message
    message = (
        "adding a constant to a column does not change the result, so the gradient with respect to the column must "
        f"sum to zero; yours sums to {a.grad.sum():.4f}. Is the mean part of the computation that autograd records?"
    )
    assert abs(a.grad.sum()) < 1e-4, message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: running_stats

# %% [markdown]
# ### Question 5: Running statistics ({points:running_stats} points)
#
# Once the network is in use, a prediction should depend on the data point alone, not on its neighbours in the batch;
# there may not even be any. So batch normalization keeps moving averages of the statistics that it meets while
# training, and normalizes with these later:
#
# $$ \bar\mu_i \leftarrow (1 - m)\, \bar\mu_i + m\, \mu_i, \qquad
# \bar\sigma_i^2 \leftarrow (1 - m)\, \bar\sigma_i^2 + m\, \frac{K}{K - 1}\, \sigma_i^2. $$
#
# Two conventions differ from Bishop's book, and both are PyTorch's. The momentum $m$ is the weight of the *new*
# batch. And what is averaged is the variance, not the standard deviation, in its unbiased form, although the
# normalization itself divides by the biased one. The reason: the moving average is meant to estimate the variance of
# all data, and the biased variance of a small batch is too small on average.

# %%
# include: update_running_stats

# %% [raw]
# # BEGIN TESTS


# %%
def test_one_step(update_running_stats):
    """one step, by hand"""
    import torch

    result = update_running_stats(torch.zeros(1), torch.ones(1), torch.tensor([[1.0], [3.0]]), momentum=0.1)
    message = "`update_running_stats` returned None: replace the `...`"
    assert result is not None, message
    mean, var = result
    message = f"old mean 0, batch mean 2, momentum 0.1: the new mean is 0.2; yours is {mean.item():.4f}"
    assert torch.allclose(mean, torch.tensor([0.2])), message
    message = (
        "old variance 1, unbiased variance of 1, 3 is 2, momentum 0.1: the new variance is 0.9 + 0.2 = 1.1; "
        f"yours is {var.item():.4f}. (1.0 comes from the biased variance, 1.0414 from the standard deviation.)"
    )
    assert torch.allclose(var, torch.tensor([1.1])), message


# %%
def test_momentum(update_running_stats):
    """momentum is the weight of the new batch"""
    import torch

    batch = torch.tensor([[1.0], [3.0]])
    result = update_running_stats(torch.tensor([7.0]), torch.tensor([5.0]), batch, momentum=0.0)
    message = "`update_running_stats` returned None: replace the `...`"
    assert result is not None, message
    message = "with momentum 0 the new batch has no weight: the averages should stay at 7 and 5"
    assert result[0].item() == 7.0 and result[1].item() == 5.0, message


# %%
def test_leaves_no_trace(update_running_stats):
    """new tensors, no graph, and the old averages as they were"""
    import torch

    mean, var = torch.zeros(2), torch.ones(2)
    batch = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    result = update_running_stats(mean, var, batch)
    message = "`update_running_stats` returned None: replace the `...`"
    assert result is not None, message
    message = "the tensors passed in must keep their values: compute new ones instead of changing them in place"
    assert torch.equal(mean, torch.zeros(2)) and torch.equal(var, torch.ones(2)), message
    message = "the averages still hang on the batch's graph, which grows with every step: compute them under no_grad"
    assert not result[0].requires_grad and not result[1].requires_grad, message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ### Demonstration: how long the averages need
#
# Batches of eight from a distribution with mean 5 and variance 9. The averages start at 0 and 1; a small momentum
# makes them slow, a large one makes them noisy.

# %%
if ready("update_running_stats"):
    figure, panels = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
    for momentum in (0.5, 0.1, 0.02):
        mean, var, track = torch.zeros(1), torch.ones(1), []
        draws = torch.Generator().manual_seed(3)
        for _ in range(150):
            mean, var = update_running_stats(mean, var, 5 + 3 * torch.randn(8, 1, generator=draws), momentum)
            track.append((mean.item(), var.item()))
        for panel, values in zip(panels, zip(*track)):
            panel.plot(range(1, 151), values, label=f"momentum {momentum}")
    for panel, name, truth in zip(panels, ("running mean", "running variance"), (5, 9)):
        panel.axhline(truth, color="black", lw=1, ls="--", label="the true value")
        panel.set(title=name, xlabel="batch")
    panels[0].legend(loc="lower right")
    plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: batch_norm_module

# %% [markdown]
# ### Question 6: Batch normalization as a layer ({points:batch_norm_module} points)
#
# Put the two together in a module that can stand in a network. What is learned must be a *parameter*, so that an
# optimizer finds it. The running statistics are not learned, yet belong to the model and have to be saved with it:
# they are *buffers*, which `register_buffer` makes. Which of the two sets of statistics is used depends on
# `self.training`, which `model.train()` and `model.eval()` switch.

# %%
# include: BatchNorm

# %% [raw]
# # BEGIN TESTS


# %%
def test_parameters_and_buffers(BatchNorm):
    """parameters and buffers, and where they start"""
    layer = BatchNorm(3)
    parameters = {name: value.tolist() for name, value in layer.named_parameters()}
    message = (
        f"`BatchNorm(3)` has the parameters {sorted(parameters)}, and should have weight and bias: "
        "in `__init__`, replace the `...`"
    )
    assert sorted(parameters) == ["bias", "weight"], message
    message = f"weight should start as three ones and bias as three zeros, not {parameters}"
    assert parameters == {"weight": [1.0, 1.0, 1.0], "bias": [0.0, 0.0, 0.0]}, message
    buffers = {name: value.tolist() for name, value in layer.named_buffers()}
    message = f"running_mean and running_var should be buffers (`register_buffer`); the buffers are {sorted(buffers)}"
    assert {"running_mean", "running_var"} <= set(buffers), message
    message = f"running_mean should start as three zeros and running_var as three ones, not {buffers}"
    assert buffers["running_mean"] == [0.0, 0.0, 0.0] and buffers["running_var"] == [1.0, 1.0, 1.0], message


# %%
def test_training(BatchNorm):
    """training: normalizes with the batch and updates the averages"""
    import torch

    layer = BatchNorm(1)
    out = layer(torch.tensor([[1.0], [3.0]]))
    message = "calling a `BatchNorm` returned None: replace the `...` in `forward`"
    assert out is not None, message
    message = f"while training, the column 1, 3 becomes -1, 1; yours became {out[0, 0]:.3f}, {out[1, 0]:.3f}"
    assert torch.allclose(out, torch.tensor([[-1.0], [1.0]]), atol=1e-4), message
    message = (
        "after this one batch the running mean is 0.2 and the running variance 1.1; "
        f"yours are {layer.running_mean.item():.4f} and {layer.running_var.item():.4f}"
    )
    assert abs(layer.running_mean.item() - 0.2) < 1e-5 and abs(layer.running_var.item() - 1.1) < 1e-5, message


# %%
def test_evaluation(BatchNorm):
    """evaluation: normalizes with the averages and leaves them alone"""
    import torch

    layer = BatchNorm(1, eps=1.0)
    message = "`BatchNorm` has no `weight`, `bias`, `running_mean`, `running_var` yet: replace the `...` in `__init__`"
    assert all(hasattr(layer, name) for name in ("weight", "bias", "running_mean", "running_var")), message
    with torch.no_grad():
        for name, value in {"weight": 3.0, "bias": -1.0, "running_mean": 1.0, "running_var": 3.0}.items():
            getattr(layer, name).fill_(value)
    layer.eval()
    out = layer(torch.tensor([[5.0]]))
    message = "calling a `BatchNorm` in evaluation mode returned None: replace the `...` in `forward`"
    assert out is not None, message
    message = (
        "running mean 1, running variance 3, eps 1: the input 5 normalizes to (5 - 1)/2 = 2, and weight 3 with bias -1 "
        f"makes that 5; yours is {out.item():.4f}"
    )
    assert abs(out.item() - 5.0) < 1e-5, message
    message = "evaluating must not change the running statistics"
    assert layer.running_mean.item() == 1.0 and layer.running_var.item() == 3.0, message


# %%
def test_single_row(BatchNorm):
    """a single row while training is refused"""
    import torch

    try:
        BatchNorm(2)(torch.tensor([[1.0, 2.0]]))
    except ValueError:
        refused = True
    else:
        refused = False
    message = "one row has no spread to normalize with: while training, `forward` should raise a ValueError for it"
    assert refused, message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: layer_norm

# %% [markdown]
# ### Question 7: Layer normalization ({points:layer_norm} points)
#
# Layer normalization turns the table on its side (Ba et al., 2016): the mean and the variance are those of one data
# point $n$, taken over its $M$ units,
#
# $$ \mu_n = \frac{1}{M} \sum_{i=1}^{M} a_{ni}, \qquad \sigma_n^2 = \frac{1}{M} \sum_{i=1}^{M} (a_{ni} - \mu_n)^2, \qquad
# y_{ni} = \gamma_i\, \frac{a_{ni} - \mu_n}{\sqrt{\sigma_n^2 + \epsilon}} + \beta_i. $$
#
# No data point depends on another any more, so training and evaluation are the same function and there is nothing to
# average. The parameters $\gamma_i$ and $\beta_i$ still belong to the units. In a transformer the pre-activations
# have shape (batch, time, units), so write your function for any number of axes in front of the last one.

# %%
# include: layer_norm

# %% [raw]
# # BEGIN TESTS


# %%
def test_each_row(layer_norm):
    """each row on its own, by hand"""
    import torch

    out = layer_norm(torch.tensor([[1.0, 3.0], [10.0, 30.0]]), torch.ones(2), torch.zeros(2), eps=0.0)
    message = "`layer_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "the rows 1, 3 and 10, 30 both normalize to -1, 1 (biased variance); "
        f"yours became {out[0].tolist()} and {out[1].tolist()}. Which axis are your statistics taken over?"
    )
    assert torch.allclose(out, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]])), message


# %%
def test_gamma_beta_eps(layer_norm):
    """gamma and beta belong to the units; eps stands inside the square root"""
    import torch

    out = layer_norm(torch.tensor([[-1.0, 1.0]]), torch.tensor([2.0, 4.0]), torch.tensor([0.0, 1.0]), eps=3.0)
    message = "`layer_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "the row -1, 1 has variance 1; with eps = 3 it becomes -0.5, 0.5. Scaled by 2 and 4, then shifted by 0 and 1, "
        f"that is -1, 3; yours is {out[0].tolist()}"
    )
    assert torch.allclose(out, torch.tensor([[-1.0, 3.0]])), message


# %%
def test_leading_axes(layer_norm):
    """any number of axes in front of the last"""
    import torch

    a = torch.arange(24.0).reshape(2, 3, 4) ** 2
    gamma, beta = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4)
    out, part = layer_norm(a, gamma, beta), layer_norm(a[1], gamma, beta)
    message = "`layer_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "a (2, 3, 4) tensor holds six data points of four units: its second half should come out as it does alone, "
        "as a (3, 4) matrix; count axes from the end, and use the last one"
    )
    assert out.shape == a.shape and torch.allclose(out[1], part, atol=1e-5), message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: rms_norm

# %% [markdown]
# ### Question 8: RMSNorm ({points:rms_norm} points)
#
# Zhang and Sennrich (2019) asked how much of layer normalization is needed, and kept only the division:
#
# $$ y_{ni} = \gamma_i\, \frac{a_{ni}}{\sqrt{\frac{1}{M} \sum_{j=1}^{M} a_{nj}^2 + \epsilon}}. $$
#
# One statistic instead of two, and no $\beta$. Most large language models of recent years use it.

# %%
# include: rms_norm

# %% [raw]
# # BEGIN TESTS


# %%
def test_by_hand(rms_norm):
    """one row, by hand"""
    import torch

    out = rms_norm(torch.tensor([[1.0, 7.0]]), torch.ones(2), eps=0.0)
    message = "`rms_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "the squares of 1, 7 have mean 25, so the row is divided by 5 and becomes 0.2, 1.4; "
        f"yours became {out[0].tolist()}. Mean or sum of the squares?"
    )
    assert torch.allclose(out, torch.tensor([[0.2, 1.4]])), message


# %%
def test_nothing_subtracted(rms_norm):
    """nothing is subtracted"""
    import torch

    out = rms_norm(torch.tensor([[4.0, 4.0]]), torch.ones(2), eps=0.0)
    message = "`rms_norm` returned None: replace the `...`"
    assert out is not None, message
    message = f"the row 4, 4 has root mean square 4 and becomes 1, 1; yours became {out[0].tolist()}"
    assert torch.allclose(out, torch.ones(1, 2)), message


# %%
def test_gamma_eps(rms_norm):
    """gamma belongs to the units; eps stands inside the square root"""
    import torch

    out = rms_norm(torch.tensor([[1.0, 7.0]]), torch.tensor([6.0, 12.0]), eps=11.0)
    message = "`rms_norm` returned None: replace the `...`"
    assert out is not None, message
    message = (
        "mean square 25 and eps = 11: the row 1, 7 is divided by the root of 36; scaled by 6 and 12 it is 1, 14; "
        f"yours is {out[0].tolist()}"
    )
    assert torch.allclose(out, torch.tensor([[1.0, 14.0]])), message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ### Demonstration: what each normalization does not see
#
# Change the pre-activations and look whether the result changes. What a normalization ignores, the layers before it
# need not get right. The last column compares your function with PyTorch's own.

# %%
if ready("batch_norm", "layer_norm", "rms_norm"):
    a = 5 + 3 * torch.randn(16, 4, generator=torch.Generator().manual_seed(5))
    ones, zeros = torch.ones(4), torch.zeros(4)
    yours = {
        "batch norm": (lambda a: batch_norm(a, ones, zeros), nn.BatchNorm1d(4)),
        "layer norm": (lambda a: layer_norm(a, ones, zeros), nn.LayerNorm(4)),
        "RMSNorm": (lambda a: rms_norm(a, ones), nn.RMSNorm(4, eps=1e-5)),
    }
    changes = {
        "all ×10": lambda a: 10 * a,
        "all +10": lambda a: a + 10,
        "column 0 ×10": lambda a: a * torch.tensor([10.0, 1.0, 1.0, 1.0]),
        "row 0 ×10": lambda a: a * torch.cat([torch.tensor([[10.0]]), torch.ones(15, 1)]),
    }
    print(f"{'unchanged by':14s}", *(f"{change:>14s}" for change in changes), f"{'like PyTorch':>14s}")
    for name, (function, module) in yours.items():
        answers = [torch.allclose(function(change(a)), function(a), atol=1e-3) for change in changes.values()]
        answers.append(torch.allclose(function(a), module(a), atol=1e-5))
        print(f"{name:14s}", *(f"{'yes' if answer else 'no':>14s}" for answer in answers))

# %% [markdown]
# ## Part C: A deep network
#
# Everything comes together in a network of twenty hidden tanh layers, started the way PyTorch starts its layers by
# default, which is too small for such a depth.

# %% [raw]
# # BEGIN QUESTION
# name: norm_mlp

# %% [markdown]
# ### Question 9: A network with normalization ({points:norm_mlp} points)
#
# The normalization goes between the linear layer and the activation, as in Bishop's book: it is the *pre*-activations
# that should stay in the range where the activation function is neither flat nor dead. The last layer gives the
# logits, and is left alone. Keep the layers in an `nn.ModuleList`: PyTorch does not find the parameters of modules in
# an ordinary list.

# %%
# include: NormMLP

# %% [raw]
# # BEGIN TESTS


# %%
def test_structure(NormMLP):
    """the layers and norms that it should have"""
    from torch import nn

    for norm, count in {"none": 0, "batch": 2, "layer": 2}.items():
        model = NormMLP([2, 5, 3, 1], norm=norm)
        message = "`NormMLP` has no `layers` and `norms` yet: replace the `...` in `__init__`"
        assert hasattr(model, "layers") and hasattr(model, "norms"), message
        message = "`layers` and `norms` should be of type `nn.ModuleList`"
        assert isinstance(model.layers, nn.ModuleList) and isinstance(model.norms, nn.ModuleList), message
        message = f"dims [2, 5, 3, 1] make 3 linear layers, not {len(model.layers)}"
        assert len(model.layers) == 3, message
        message = f"with norm={norm!r} and two hidden layers there should be {count} norms, not {len(model.norms)}"
        assert len(model.norms) == count, message


# %%
def test_forward(NormMLP):
    """activation after the hidden layer, none after the last"""
    import torch

    model = NormMLP([1, 1, 1], activation="relu")
    message = "`NormMLP` has no `layers` yet: replace the `...` in `__init__`"
    assert hasattr(model, "layers"), message
    with torch.no_grad():
        for layer, weight, bias in zip(model.layers, (1.0, -2.0), (0.0, 1.0)):
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    out = model(torch.tensor([[3.0], [-3.0]]))
    message = "calling a `NormMLP` returned None: replace the `...` in `forward`"
    assert out is not None, message
    message = (
        "hidden weight 1, output weight -2 and bias 1: the inputs 3, -3 become 3, 0 after the ReLU and -5, 1 at the "
        f"output; yours are {out.flatten().tolist()}. Is there an activation after the last layer?"
    )
    assert torch.allclose(out, torch.tensor([[-5.0], [1.0]])), message


# %%
def test_order(NormMLP):
    """normalization comes before the activation"""
    import torch

    model = NormMLP([1, 1, 1], activation="relu", norm="batch")
    message = "`NormMLP` has no `layers` yet: replace the `...` in `__init__`"
    assert hasattr(model, "layers"), message
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    out = model(torch.tensor([[1.0], [3.0]]))
    message = "calling a `NormMLP` returned None: replace the `...` in `forward`"
    assert out is not None, message
    message = (
        "batch norm turns 1, 3 into -1, 1, and the ReLU after it makes that 0, 1; "
        f"yours are {out.flatten().tolist()}. (-1, 1 means that the activation came first.)"
    )
    assert torch.allclose(out, torch.tensor([[0.0], [1.0]]), atol=1e-4), message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: training

# %% [markdown]
# ### Question 10: Training ({points:training} points)
#
# Write the training loop: shuffle, cut into mini-batches, and for each one compute the loss, its gradient, and a
# step. Gradients accumulate in PyTorch until someone clears them, and the loss expects logits, not probabilities.

# %%
# include: train_classifier

# %% [raw]
# # BEGIN TESTS


# %%
def test_one_step(train_classifier):
    """one step, by hand"""
    import torch

    model = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    losses = train_classifier(model, torch.ones(2, 1), torch.ones(2, 1), n_epochs=1, lr=1.0, batch_size=2)
    message = "`train_classifier` returned None: replace the `...`"
    assert losses is not None, message
    message = f"one epoch should give a list with one loss, not {losses!r}"
    assert isinstance(losses, list) and len(losses) == 1, message
    message = f"with all logits 0 the mean loss is ln 2 = 0.6931, whatever the targets; yours is {losses[0]:.4f}"
    assert abs(losses[0] - 0.6931) < 1e-3, message
    message = (
        "the sigmoid of 0 is 0.5 and the target 1, so the gradient of the weight is -0.5 and one step with learning "
        f"rate 1 leads from 0 to 0.5; yours led to {model.weight.item():.4f}. (1.0 means that the loss is summed, "
        "not averaged.)"
    )
    assert abs(model.weight.item() - 0.5) < 1e-4, message


# %%
def test_gradients_cleared(train_classifier):
    """the gradient of one step does not leak into the next"""
    import torch

    model = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    losses = train_classifier(model, torch.ones(2, 1), torch.ones(2, 1), n_epochs=2, lr=1.0, batch_size=2)
    message = "`train_classifier` returned None: replace the `...`"
    assert losses is not None, message
    message = (
        "after one step weight and bias are 0.5, the logit is 1 and the gradient -0.269, so the weight goes on to 0.769; "
        f"yours is {model.weight.item():.4f}. (1.269 means that the first gradient was still there.)"
    )
    assert abs(model.weight.item() - 0.769) < 1e-3, message


# %%
def test_every_point_once(train_classifier):
    """every data point once per epoch, in a new order"""
    import torch

    class Recorder(torch.nn.Linear):
        def forward(self, x):
            seen.append(x.flatten().tolist())
            return super().forward(x)

    seen = []
    model = Recorder(1, 1).eval()
    x, t = torch.arange(10.0).reshape(10, 1), torch.ones(10, 1)
    losses = train_classifier(model, x, t, n_epochs=2, lr=0.0, batch_size=4)
    message = "`train_classifier` returned None: replace the `...`"
    assert losses is not None, message
    sizes = [len(rows) for rows in seen]
    message = f"ten data points make batches of 4, 4 and 2 in each of the two epochs; yours were {sizes}"
    assert sizes == [4, 4, 2, 4, 4, 2], message
    first, second = sum(seen[:3], []), sum(seen[3:], [])
    message = "in each epoch every data point should be used exactly once"
    assert sorted(first) == sorted(second) == list(range(10)), message
    message = "the order was the same in both epochs: shuffle anew in each"
    assert first != second, message
    message = "the model came in evaluation mode and should be put into training mode"
    assert model.training, message


# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ### Demonstration: twenty hidden layers, with and without normalization
#
# The two moons are an easy problem: a network with one hidden layer solves it. Depth alone makes it hard. The three
# networks below start from the same linear layers and see the same batches. This takes a few seconds.

# %% tags=["otter_ignore"]
points, classes = make_moons(n_samples=320, noise=0.2, random_state=0)
x_moons = torch.tensor(points, dtype=torch.float32)
t_moons = torch.tensor(classes, dtype=torch.float32).reshape(-1, 1)

if ready("BatchNorm", "NormMLP", "train_classifier"):
    networks, histories = {}, {}
    for norm in ("none", "batch", "layer"):
        torch.manual_seed(6)
        networks[norm] = NormMLP([2] + [64] * 20 + [1], activation="tanh", norm=norm)
        order = torch.Generator().manual_seed(7)
        histories[norm] = train_classifier(
            networks[norm], x_moons, t_moons, 40, lr=0.02, batch_size=32, generator=order
        )
    figure, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
    for norm, losses in histories.items():
        panel.plot(range(1, len(losses) + 1), losses, lw=2, label=f"norm: {norm}")
    panel.axhline(math.log(2), color="black", lw=1, ls="--", label="guessing, ln 2")
    panel.set(xlabel="epoch", ylabel="training loss", ylim=(0, None))
    panel.legend()
    plt.show()

# %% tags=["otter_ignore"]
if ready("BatchNorm", "NormMLP", "train_classifier"):
    g1, g2 = np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.5, 2, 90))
    grid = torch.tensor(np.column_stack([g1.ravel(), g2.ravel()]), dtype=torch.float32)
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.2), sharey=True, layout="constrained")
    for panel, (norm, network) in zip(panels, networks.items()):
        network.eval()  # the running statistics now take the place of the batch's
        with torch.no_grad():
            probability = torch.sigmoid(network(grid)).reshape(g1.shape)
        shade = panel.pcolormesh(g1, g2, probability.numpy(), cmap="RdBu_r", vmin=0, vmax=1, alpha=0.6, rasterized=True)
        panel.scatter(points[:, 0], points[:, 1], c=classes, cmap="RdBu_r", edgecolors="black", linewidths=0.4, s=14)
        panel.set(title=f"norm: {norm}", xlabel="$x_1$")
    panels[0].set_ylabel("$x_2$")
    figure.colorbar(shade, ax=panels, label="predicted probability of class 1")
    plt.show()

# %% [markdown]
# Without normalization the loss stays at $\ln 2$, the loss of guessing: the signal fades on its way through twenty
# layers, the output hardly depends on the input, and plain gradient descent gets next to no gradient to work with.
# With either normalization every layer receives pre-activations of a sensible size, from the first step on, and the
# same network with the same learning rate learns the moons. The curves are jagged, since a deep network at a fixed
# learning rate now and then takes a step that is too long.
