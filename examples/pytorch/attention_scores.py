"""Softmax attention scores: softmax(Q K^T / sqrt(d)), one matrix of probabilities per head."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(head_dim)

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-2, -1)) * self.scale
        return torch.softmax(scores, dim=-1)


batch = 2
heads = 16
sequence = 2048
head_dim = 64


def get_inputs():
    shape = (batch, heads, sequence, head_dim)
    return [torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return [head_dim]
