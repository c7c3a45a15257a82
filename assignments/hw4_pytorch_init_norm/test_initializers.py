"""Hidden cases: He and Xavier initialization. Draws are never compared, only what every right answer shares."""

import pytest
import torch

from assignments.hw4_pytorch_init_norm.bands import band
from autograder.authoring import require
from autograder.worker.helpers import attempts

HE = pytest.mark.question("he_init")
XAVIER = pytest.mark.question("xavier_init")
SIGNAL = (30, 128, 100)  # layers, width, rows
EACH = pytest.mark.parametrize(
    "name",
    [
        pytest.param("he_normal", id="he_normal", marks=HE),
        pytest.param("he_uniform", id="he_uniform", marks=HE),
        pytest.param("xavier_normal", id="xavier_normal", marks=XAVIER),
        pytest.param("xavier_uniform", id="xavier_uniform", marks=XAVIER),
    ],
)


def statistics(nb, name, shapes, seed):
    """Statistics of the entries of freshly filled matrices; the second one in float64."""
    torch.manual_seed(seed)
    found = []
    for (rows, columns), dtype in zip(shapes, (torch.float32, torch.float64), strict=True):
        weight = torch.zeros(rows, columns, dtype=dtype)
        getattr(nb, name)(weight)
        entries = weight.detach().double()
        std, mean = torch.std_mean(entries)
        tails = ((entries - mean) ** 4).mean() ** 0.25 / std
        found.append(
            {"standard deviation": float(std), "one plus mean / std": 1.0 + float(mean / std), "tails": float(tails)}
        )
    return found


def in_place(nb, name, weight):
    """What the call leaves of the tensor's identity and of its place in the graph."""
    plain, leaf = weight.clone(), weight.clone().requires_grad_()
    returned = getattr(nb, name)(plain)
    try:
        returned_leaf = getattr(nb, name)(leaf)
    except RuntimeError as error:
        return {"raised for a weight that requires gradients": type(error).__name__}
    return {
        "returns the tensor it was given": returned is plain and returned_leaf is leaf,
        "every entry overwritten": bool((plain != weight).all() and (leaf != weight).all()),
        "requires_grad as before": [plain.requires_grad, leaf.requires_grad],
        "recorded in a graph": plain.grad_fn is not None or leaf.grad_fn is not None,
    }


def draws(nb, name, seed):
    """Which calls draw equal values, and whether the global generator moved."""

    def fill(generator):
        weight = torch.zeros(6, 9)
        getattr(nb, name)(weight, generator=generator)
        return weight

    torch.manual_seed(seed)
    before = torch.get_rng_state()
    generator = torch.Generator().manual_seed(seed)
    first, second = fill(generator), fill(generator)
    again = fill(torch.Generator().manual_seed(seed))
    other = fill(torch.Generator().manual_seed(seed + 1))
    untouched = torch.equal(before, torch.get_rng_state())
    third, fourth = fill(None), fill(None)
    torch.manual_seed(seed)
    repeated = fill(None)
    return {
        "equal generators draw equal values": torch.equal(first, again),
        "different generators draw different values": not torch.equal(first, other),
        "the next call with a generator draws new values": not torch.equal(first, second),
        "a passed generator leaves the global one alone": untouched,
        "the next call without one draws new values": not torch.equal(third, fourth),
        "without one, torch.manual_seed decides the values": torch.equal(third, repeated),
    }


def observed(nb, name, shapes, weight, seeds):
    """One part per case of this function."""
    return attempts(
        spread=lambda: statistics(nb, name, shapes, seeds[0]),
        in_place=lambda: in_place(nb, name, weight),
        generator=lambda: draws(nb, name, seeds[1]),
    )


def given(name):
    """The inputs of the cases of one function."""
    return name, [[60, 500], [400, 100]], torch.full((4, 7), 9.0), [14, 29]


def signals(nb, names, relu, layers, width, rows, seed):
    """For each function the standard deviation of the last pre-activations of a deep network filled by it."""
    return [signal(getattr(nb, name), relu, layers, width, rows, seed) for name in names]


def signal(fill, relu, layers, width, rows, seed):
    """Standard deviation of the last pre-activations of a deep network."""
    torch.manual_seed(seed)
    z = torch.randn(rows, width)
    for _ in range(layers):
        weight = torch.zeros(width, width)
        fill(weight)
        a = z @ weight.T
        z = torch.relu(a) if relu else torch.tanh(a)
    return float(a.std())


@EACH
@pytest.mark.points(1.25)
def test_spread(compare, name):
    """Standard deviation, mean and range of the entries, for a wide and for a tall matrix"""
    # With 30,000 draws a standard error is below 0.6 percent on either side; the tails tell normal from uniform.
    compare(observed, *given(name), part="spread", rtol=0.04, forbid=("nn.init",))


@EACH
@pytest.mark.points(0.5)
def test_in_place(compare, name):
    """Fills the tensor that it is given, returns it, and stays out of the graph"""
    compare(observed, *given(name), part="in_place", forbid=("nn.init",))


@EACH
@pytest.mark.points(0.75)
def test_generator(compare, name):
    """New values at every call, all of them from the generator that is passed"""
    compare(observed, *given(name), part="generator", forbid=("nn.init",))


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "family",
    [pytest.param("he", id="he", marks=HE), pytest.param("xavier", id="xavier", marks=XAVIER)],
)
def test_signal_survives(observe, family):
    """The signal is neither lost nor blown up by thirty layers"""
    low, high = band(f"signal.{family}")
    names = [f"{family}_normal", f"{family}_uniform"]
    for name, std in zip(names, observe(signals, names, family == "he", *SIGNAL, 7, forbid=("nn.init",)), strict=True):
        require(
            low <= std <= high,
            "After thirty layers of the activation it is made for, the signal has vanished or exploded: the spread of "
            "the weights is off by a factor that acts once per layer.",
            f"{name}: std of the last pre-activations {std:.3g}, band [{low}, {high}]",
        )
