"""PyTorch, initialization, and normalization: the fourth assignment."""
