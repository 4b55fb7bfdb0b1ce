"""A folder of .npz samples as Olive takes calibration data: a user script that its configuration names."""

from pathlib import Path

import numpy as np
import torch
from olive.data.registry import Registry


class Samples(torch.utils.data.Dataset):
    """One sample at a time: tensors by name, and a label that nobody reads."""

    def __init__(self, folder: str) -> None:
        self._paths = sorted(Path(folder).glob("*.npz"))

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> tuple[dict[str, torch.Tensor], int]:
        with np.load(self._paths[index]) as stored:
            return {name: torch.from_numpy(stored[name]) for name in stored.files}, 0


@Registry.register_dataset()
def npz_folder(data_dir: str, **_options: object) -> Samples:
    return Samples(data_dir)
