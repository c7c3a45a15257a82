"""Known mistakes: the training loop."""

import torch
from torch import nn

from autograder.authoring import mistake

FULL_BATCH = "test_training.py::test_full_batch"
EPOCHS = "test_training.py::test_epochs"
MEAN_LOSS = "test_training.py::test_mean_loss"
TRACES = "test_training.py::test_traces"


@mistake(
    "training",
    "gradients-not-zeroed",
    hint="The gradients are never set to zero, so every step adds up all the earlier ones. Clear them before each "
    "backward pass.",
    caught_by=FULL_BATCH,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "sigmoid-before-the-loss",
    hint="A sigmoid is applied before a loss that applies it again. The loss with logits takes the network's output as "
    "it is.",
    caught_by=(FULL_BATCH, MEAN_LOSS),
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(torch.sigmoid(model(x[rows])), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "summed-loss",
    hint="The loss of a mini-batch is summed, so the step grows with the size of the mini-batch. Take the mean.",
    caught_by=FULL_BATCH,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "total-not-averaged",
    hint="The losses of an epoch are added up but not divided by the number of data points.",
    caught_by=(FULL_BATCH, MEAN_LOSS),
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total)
    return history


@mistake(
    "training",
    "mean-of-mini-batch-means",
    hint="The mean is taken over mini-batches, so the points of a small last one count for more than the others. Weigh "
    "each by its number of points.",
    caught_by=MEAN_LOSS,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        history.append(total / -(-len(x) // batch_size))
    return history


@mistake(
    "training",
    "loss-measured-afterwards",
    hint="The loss is measured once more when the epoch is over. Each data point counts with the loss it had when its "
    "mini-batch was used: that costs no extra forward pass.",
    caught_by=FULL_BATCH,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.append(loss_function(model(x), t).item())
    return history


@mistake(
    "training",
    "remainder-dropped",
    hint="The last, smaller mini-batch is left out, so some data points of every epoch are never used.",
    caught_by=(EPOCHS, MEAN_LOSS),
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            if len(rows) < batch_size:
                continue
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "not-shuffled",
    hint="The data come in the same order in every epoch. Shuffle them anew at the start of each.",
    caught_by=EPOCHS,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.arange(len(x)).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "shuffled-once",
    hint="The data are shuffled once, before the first epoch. Draw a new order for every epoch.",
    caught_by=EPOCHS,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    order = torch.randperm(len(x), generator=generator)
    for _ in range(n_epochs):
        total = 0.0
        for rows in order.split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "labels-shuffled-apart",
    hint="Inputs and targets are shuffled separately, so each point gets some other point's label. One order for both.",
    caught_by=FULL_BATCH,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[torch.randperm(len(x), generator=generator)[: len(rows)]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "generator-ignored",
    hint="The generator that is passed is not used for shuffling, so a run cannot be repeated. Hand it on to "
    "`torch.randperm`.",
    caught_by=EPOCHS,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=None).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "never-in-training-mode",
    hint="The model is not put into training mode. It may come in evaluation mode, in which batch norm collects no "
    "statistics: call `model.train()` first.",
    caught_by=TRACES,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "left-in-evaluation-mode",
    hint="The model is left in evaluation mode. The caller decides when training is over.",
    caught_by=TRACES,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    model.eval()
    return history


@mistake(
    "training",
    "momentum",
    hint="The optimizer has a momentum. Plain gradient descent is asked for.",
    caught_by=FULL_BATCH,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "adam",
    hint="The optimizer is Adam. Plain gradient descent (SGD) is asked for.",
    caught_by=FULL_BATCH,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history


@mistake(
    "training",
    "graph-kept",
    hint="The losses that are returned hold on to the graph. Turn each into a plain number with `.item()`.",
    caught_by=TRACES,
)
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss * len(rows)
        history.append(total / len(x))
    return history
