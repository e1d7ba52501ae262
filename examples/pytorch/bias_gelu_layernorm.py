"""The block after a linear layer in a transformer: add a bias, GELU, then layer norm over the features."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(F.gelu(x + self.bias))


tokens = 8192
features = 3072


def get_inputs():
    return [torch.randn(tokens, features)]


def get_init_inputs():
    return [features]
