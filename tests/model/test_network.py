"""Every network that predicts poses keeps the promises that training and solving rely on."""

import pytest

from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.loading import KINDS


def test_it_is_an_outline_only() -> None:
    with pytest.raises(TypeError, match="abstract"):
        PoseNetwork()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_follow_it(kind: str) -> None:
    network = KINDS[kind](KINDS[kind].config_class())
    assert isinstance(network, PoseNetwork)
    assert network.space.width > network.space.translation_width
    assert network.schedule.times >= 1
    assert network.pairwise in (True, False)
