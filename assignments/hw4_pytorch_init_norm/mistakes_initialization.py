"""Known mistakes: the initializers and the signal-propagation table."""

import math

import torch

from autograder.authoring import mistake

SPREAD = "test_initializers.py::test_spread"
IN_PLACE = "test_initializers.py::test_in_place"
GENERATOR = "test_initializers.py::test_generator"
SIGNAL = "test_initializers.py::test_signal_survives"


@mistake(
    "he_init",
    "variance-for-std",
    hint="2 / fan_in is the variance of the entries; `normal_` wants their standard deviation. Take the root.",
    caught_by=(f"{SPREAD}[he_normal]", f"{SIGNAL}[he]"),
)
def he_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, 2.0 / tensor.shape[1], generator=generator)


@mistake(
    "he_init",
    "fans-swapped",
    hint="That is the spread for fan_out. A weight matrix has shape (fan_out, fan_in): how many inputs each unit adds "
    "up is the number of columns, and it is this sum whose variance must be kept.",
    caught_by=f"{SPREAD}[he_normal]",
)
def he_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / tensor.shape[0]), generator=generator)


@mistake(
    "he_init",
    "factor-two-missing",
    hint="The 2 is missing. ReLU throws away half of its input's mean square, and the 2 in He's variance pays for "
    "that.",
    caught_by=(f"{SPREAD}[he_normal]", f"{SIGNAL}[he]"),
)
def he_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(1.0 / tensor.shape[1]), generator=generator)


@mistake(
    "he_init",
    "sum-of-fans",
    hint="That is Xavier's spread. He looks at the forward pass alone: 2 / fan_in, without fan_out.",
    caught_by=f"{SPREAD}[he_normal]",
)
def he_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / sum(tensor.shape)), generator=generator)


@mistake(
    "he_init",
    "divided-by-the-scale",
    hint="The draws are divided by the standard deviation where they should be multiplied by it: more inputs per unit "
    "call for smaller weights, and yours grow.",
    caught_by=(f"{SPREAD}[he_normal]", f"{SIGNAL}[he]"),
)
def he_normal(tensor, generator=None):
    with torch.no_grad():
        draws = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
        return tensor.copy_(draws / math.sqrt(2.0 / tensor.shape[1]))


@mistake(
    "he_init",
    "same-seed-every-time",
    hint="Every call returns the same values, so all layers of one shape would start out equal. Draw from the "
    "generator that is passed, or from the global one; do not seed one inside the function.",
    caught_by=f"{GENERATOR}[he_normal]",
)
def he_normal(tensor, generator=None):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / tensor.shape[1]), generator=generator)


@mistake(
    "he_init",
    "generator-ignored",
    hint="The generator that is passed is not used: the values come from PyTorch's global one. Hand it on to the call "
    "that draws.",
    caught_by=f"{GENERATOR}[he_normal]",
)
def he_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / tensor.shape[1]))


@mistake(
    "he_init",
    "new-tensor",
    hint="The function returns a new tensor and leaves the one it was given as it was, so a layer's weights would not "
    "change. Write the values into the given tensor, and return that one.",
    caught_by=(f"{IN_PLACE}[he_normal]", f"{SPREAD}[he_normal]"),
)
def he_normal(tensor, generator=None):
    return torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) * math.sqrt(2.0 / tensor.shape[1])


@mistake(
    "he_init",
    "recorded",
    hint="A layer's weights require gradients, and PyTorch refuses to overwrite such a tensor while it records "
    "operations. Filling is no part of the computation to differentiate: do it under `torch.no_grad()`.",
    caught_by=f"{IN_PLACE}[he_normal]",
)
def he_normal(tensor, generator=None):
    return tensor.normal_(0.0, math.sqrt(2.0 / tensor.shape[1]), generator=generator)


@mistake(
    "he_init",
    "standard-deviation-as-bound",
    hint="The standard deviation is used as the bound. A uniform distribution on [-b, b] has variance b²/3, so b must "
    "be √3 standard deviations.",
    caught_by=(f"{SPREAD}[he_uniform]", f"{SIGNAL}[he]"),
)
def he_uniform(tensor, generator=None):
    bound = math.sqrt(2.0 / tensor.shape[1])
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


@mistake(
    "he_init",
    "pytorch-default",
    hint="A bound of 1/√fan_in is PyTorch's own default, whose variance is six times smaller than He's. Start from the "
    "variance that He asks for and work out the bound.",
    caught_by=(f"{SPREAD}[he_uniform]", f"{SIGNAL}[he]"),
)
def he_uniform(tensor, generator=None):
    bound = 1.0 / math.sqrt(tensor.shape[1])
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


@mistake(
    "he_init",
    "not-centred",
    hint="All entries are positive. The interval has to reach from -b to b: weights with a mean other than zero push "
    "every pre-activation the same way.",
    caught_by=f"{SPREAD}[he_uniform]",
)
def he_uniform(tensor, generator=None):
    with torch.no_grad():
        return tensor.uniform_(0.0, math.sqrt(6.0 / tensor.shape[1]), generator=generator)


@mistake(
    "he_init",
    "normal-draws",
    hint="The spread is right, but the draws are normal, not uniform: some lie beyond the bound.",
    caught_by=f"{SPREAD}[he_uniform]",
)
def he_uniform(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / tensor.shape[1]), generator=generator)


@mistake(
    "xavier_init",
    "he-spread",
    hint="That is He's spread. Xavier's compromise between the forward and the backward pass has fan_in + fan_out in "
    "it.",
    caught_by=f"{SPREAD}[xavier_normal]",
)
def xavier_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / tensor.shape[1]), generator=generator)


@mistake(
    "xavier_init",
    "factor-two-missing",
    hint="The 2 is missing. Xavier's variance is one over the *mean* of fan_in and fan_out, and the mean is half of "
    "the sum.",
    caught_by=(f"{SPREAD}[xavier_normal]", f"{SIGNAL}[xavier]", "test_training.py::test_with_xavier"),
)
def xavier_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(1.0 / sum(tensor.shape)), generator=generator)


@mistake(
    "xavier_init",
    "gain",
    hint="The spread is 5/3 times too large: that is the gain PyTorch recommends for tanh. Here no gain is asked for.",
    caught_by=f"{SPREAD}[xavier_normal]",
)
def xavier_normal(tensor, generator=None):
    with torch.no_grad():
        return tensor.normal_(0.0, 5.0 / 3.0 * math.sqrt(2.0 / sum(tensor.shape)), generator=generator)


@mistake(
    "xavier_init",
    "reseeds-everything",
    hint="Seeding PyTorch's global generator inside the function disturbs every other draw of the program. Hand the "
    "generator that is passed on to the call that draws, and leave the global one alone.",
    caught_by=f"{GENERATOR}[xavier_normal]",
)
def xavier_normal(tensor, generator=None):
    if generator is not None:
        torch.manual_seed(generator.initial_seed())
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / sum(tensor.shape)))


@mistake(
    "xavier_init",
    "standard-deviation-as-bound",
    hint="The standard deviation is used as the bound. A uniform distribution on [-b, b] has variance b²/3, so b must "
    "be √3 standard deviations.",
    caught_by=(f"{SPREAD}[xavier_uniform]", f"{SIGNAL}[xavier]"),
)
def xavier_uniform(tensor, generator=None):
    bound = math.sqrt(2.0 / sum(tensor.shape))
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


@mistake(
    "xavier_init",
    "he-bound",
    hint="That is He's bound. Xavier's compromise between the forward and the backward pass has fan_in + fan_out in "
    "it.",
    caught_by=f"{SPREAD}[xavier_uniform]",
)
def xavier_uniform(tensor, generator=None):
    bound = math.sqrt(6.0 / tensor.shape[1])
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


@mistake(
    "xavier_init",
    "nothing-returned",
    hint="The tensor is filled, but the function returns nothing: the same tensor is to be returned.",
    caught_by=f"{IN_PLACE}[xavier_uniform]",
)
def xavier_uniform(tensor, generator=None):
    bound = math.sqrt(6.0 / sum(tensor.shape))
    with torch.no_grad():
        tensor.uniform_(-bound, bound, generator=generator)


TABLE = "test_preactivation_stds.py::test_table"


@mistake(
    "preactivation_stds",
    "after-the-activation",
    hint="The table holds the spread of the layers' outputs. It is the *pre*-activations that are asked for: take the "
    "standard deviation before the activation is applied.",
    caught_by=TABLE,
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        x = activation(x @ weight.T).detach()
        stds.append(x.std().item())
    return stds


@mistake(
    "preactivation_stds",
    "variances",
    hint="The table holds variances. The standard deviation is their root.",
    caught_by=(TABLE, "test_preactivation_stds.py::test_ratio_law"),
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        a = (x @ weight.T).detach()
        stds.append(a.var().item())
        x = activation(a)
    return stds


@mistake(
    "preactivation_stds",
    "root-mean-square",
    hint="The root mean square is not the standard deviation unless the mean is zero: subtract the mean first.",
    caught_by=TABLE,
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        a = (x @ weight.T).detach()
        stds.append(a.square().mean().sqrt().item())
        x = activation(a)
    return stds


@mistake(
    "preactivation_stds",
    "population-std",
    hint="The sum of squares is divided by n. The sample standard deviation, which is asked for and which `torch.std` "
    "computes, divides by n - 1.",
    caught_by=TABLE,
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        a = (x @ weight.T).detach()
        stds.append(a.std(correction=0).item())
        x = activation(a)
    return stds


@mistake(
    "preactivation_stds",
    "inputs-counted",
    hint="The first entry is the spread of the inputs. The table starts with the pre-activations of the first layer.",
    caught_by=(TABLE, "test_preactivation_stds.py::test_ratio_law"),
)
def preactivation_stds(weights, x, activation):
    stds = [x.std().item()]
    for weight in weights[:-1]:
        a = (x @ weight.T).detach()
        stds.append(a.std().item())
        x = activation(a)
    return stds


@mistake(
    "preactivation_stds",
    "mean-over-units",
    hint="The standard deviation is taken for each unit and then averaged. It is asked for over all entries of a layer "
    "together: one number for the whole matrix.",
    caught_by=TABLE,
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        a = (x @ weight.T).detach()
        stds.append(a.std(dim=0).mean().item())
        x = activation(a)
    return stds


@mistake(
    "preactivation_stds",
    "no-activation",
    hint="The activation is left out, so the layers collapse into a single linear one. Each layer works on the "
    "*activated* pre-activations of the one before.",
    caught_by=TABLE,
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        x = (x @ weight.T).detach()
        stds.append(x.std().item())
    return stds


@mistake(
    "preactivation_stds",
    "graph-kept",
    hint="The entries still hang on to the graph of the whole network. Record nothing (`torch.no_grad()`), and return "
    "plain numbers.",
    caught_by="test_preactivation_stds.py::test_leaves_no_trace",
)
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        a = x @ weight.T
        stds.append(a.std())
        x = activation(a)
    return stds
