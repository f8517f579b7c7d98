"""What must hold on a GPU too; run by `make gpu-check`."""

import numpy as np
import pytest
import torch

from mdsd_core.distributions import check_distribution

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_probabilities_on_the_device_are_read_as_those_on_the_host(dtype):
    p = torch.softmax(torch.linspace(-3, 3, 64, dtype=torch.float64), 0).to(dtype)
    assert np.array_equal(check_distribution(p.cuda()), check_distribution(p))
