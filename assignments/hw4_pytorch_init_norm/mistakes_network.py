"""Known mistakes: the network with normalization."""

import torch
from torch import nn

from autograder.authoring import mistake

LOGITS = "test_norm_mlp.py::test_logits"
PARTS = "test_norm_mlp.py::test_parts"
EVALUATION = "test_norm_mlp.py::test_evaluation"
TRAINED = "test_training.py::test_with_normalization"
HELPS = "test_training.py::test_normalization_helps"
UNTRAINED = "test_training.py::test_without_normalization"
NAMES = "test_norm_mlp.py::test_unknown_names"


@mistake(
    "norm_mlp",
    "plain-list",
    hint="The layers are kept in a plain list, which hides their parameters from the module: an optimizer would train "
    "nothing. Use `nn.ModuleList`.",
    caught_by=PARTS,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = [nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1)]
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "norms-in-a-plain-list",
    hint="The normalizations are kept in a plain list, which hides their parameters and buffers from the module, and "
    "`eval()` never reaches them. Use `nn.ModuleList`.",
    caught_by=(PARTS, EVALUATION),
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = [kind(width) for width in dims[1:-1] if kind]

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "activation-after-the-last-layer",
    hint="The activation is applied to the output, too. The last layer is linear and nothing else: logits may be any "
    "number.",
    caught_by=LOGITS,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.activation(self.layers[-1](x))


@mistake(
    "norm_mlp",
    "normalized-after-the-activation",
    hint="The activations are normalized. It is the *pre*-activations: linear, normalization, activation.",
    caught_by=(f"{LOGITS}[batch]", f"{LOGITS}[layer]"),
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = self.activation(layer(x))
            if self.norms:
                x = self.norms[i](x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "normalizations-not-used",
    hint="The normalizations are built but not used in the forward pass.",
    caught_by=(f"{LOGITS}[batch]", f"{LOGITS}[layer]", PARTS, TRAINED, HELPS),
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "output-normalized",
    hint="There is a normalization for the output layer as well. Only hidden layers are normalized, so there is one "
    "fewer than there are linear layers.",
    caught_by=PARTS,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            if i < len(self.layers) - 1:
                x = self.activation(x)
        return x


@mistake(
    "norm_mlp",
    "one-shared-normalization",
    hint="All hidden layers share one normalization, with one scale, shift and set of running averages between them. "
    "Build a new one for each.",
    caught_by=PARTS,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        shared = kind(dims[1]) if kind else None
        self.norms = nn.ModuleList(shared if width == dims[1] else kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "library-batch-norm",
    hint="The batch normalization is PyTorch's. Put your own `BatchNorm` to use.",
    caught_by=PARTS,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "batch-and-layer-mixed-up",
    hint="'batch' gives layer normalization and 'layer' batch normalization.",
    caught_by=(PARTS, f"{LOGITS}[batch]", f"{LOGITS}[layer]"),
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": nn.LayerNorm, "layer": BatchNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "always-relu",
    hint="The activation is ReLU whatever is asked for. Use the argument; its default is tanh.",
    caught_by=(f"{LOGITS}[default-settings]", f"{LOGITS}[layer]"),
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = torch.relu
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "other-defaults",
    hint="Without further arguments the network uses ReLU and batch normalization. The defaults are tanh and no "
    "normalization.",
    caught_by=f"{LOGITS}[default-settings]",
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="relu", norm="batch"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "no-bias",
    hint="The linear layers have no bias. Batch norm makes it redundant in front of it, but the network is asked to "
    "keep it in every layer.",
    caught_by=PARTS,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1], bias=False) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "unknown-names-accepted",
    hint="An unknown activation or normalization is silently taken for another one, so a misspelt setting would go "
    "unnoticed. Refuse it with a ValueError.",
    caught_by=NAMES,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        self.activation = torch.relu if activation == "relu" else torch.tanh
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"batch": BatchNorm, "layer": nn.LayerNorm}.get(norm)
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "unknown-names-key-error",
    hint="An unknown name ends in a KeyError. Say what is wrong with the argument: raise a ValueError.",
    caught_by=NAMES,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)


@mistake(
    "norm_mlp",
    "initialized-by-itself",
    hint="Yours does: check that the layers keep PyTorch's own initialization, that nothing is normalized, and that "
    "the optimizer is plain SGD.",
    caught_by=UNTRAINED,
)
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu") or norm not in ("none", "batch", "layer"):
            raise ValueError("unknown activation or norm")
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        for layer in self.layers:
            xavier_normal(layer.weight)
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = nn.ModuleList(kind(width) for width in dims[1:-1] if kind)

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.activation(x)
        return self.layers[-1](x)
