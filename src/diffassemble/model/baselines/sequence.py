"""LSTM (Wu et al. 2020, as in Breaking Bad): one piece after the other, each told the poses before it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from diffassemble.model.baselines.perceptron import POSE, perceptron


class Sequence(nn.Module):
    """A recurrent reader looks at all pieces in both directions; a recurrent writer then lays them one by one."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.reader = nn.LSTM(features, width // 2, batch_first=True, bidirectional=True)
        self.writer = nn.LSTMCell(width + POSE, width)
        self.pose = perceptron(width, width, POSE)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        lengths = present.sum(1).cpu()
        packed = pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
        read, _ = pad_packed_sequence(self.reader(packed)[0], batch_first=True, total_length=features.shape[1])
        pose = features.new_zeros(len(features), POSE)
        state: tuple[Tensor, Tensor] | None = None
        laid = []
        for piece in read.unbind(1):
            state = self.writer(torch.cat([piece, pose], -1), state)
            pose = self.pose(state[0])
            laid.append(pose)
        return torch.stack(laid, 1)
