"""Folders and names of the server's adapters; none is ever used twice.

vLLM caches prompts by the name and the path of the adapter. So every version has its own: role,
round, attempt, as destroy-3.1. An old folder is emptied but stays, so that a run resumed after a
kill does not use it again.
"""

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from spo_jax.program import Role
from spo_jax.rl.lora import LoraConfig
from spo_jax.rl.peft import export_peft
from spo_jax.rl.qwen.config import QwenConfig
from spo_jax.rl.updates.trainer import Learner

Named = dict[Role, tuple[str, Path]]  # the name and the folder of a role's adapter
ADAPTERS = "adapters"  # its name in a run folder


class Versions:
    """The versions in a run's folder. lora, model: the configs of new adapters."""

    def __init__(self, folder: Path, lora: LoraConfig, model: QwenConfig) -> None:
        self._folder, self._lora, self._model = folder / ADAPTERS, lora, model
        # A server of the user may have loaded adapters of an earlier run from this path.
        self._mark = secrets.token_hex(4)
        self._folder.mkdir(parents=True, exist_ok=True)

    def publish(self, learners: Mapping[Role, Learner], number: int) -> Named:
        """Write both adapters after round `number`; returns their new names and folders."""
        found: Named = {}
        for role, learner in learners.items():
            folder = self._fresh(f"{role}-{number}")
            export_peft(learner.adapter, self._lora, self._model, folder)
            found[role] = (f"{folder.name}-{self._mark}", folder)
        return found

    def tidy(self, kept: Mapping[Role, tuple[str, Path]]) -> None:
        """Empty the folders of all other versions."""
        mine = {folder for _, folder in kept.values()}
        for folder in self._folder.iterdir():
            if folder.is_dir() and folder not in mine:
                for file in folder.iterdir():
                    file.unlink() if not file.is_dir() else shutil.rmtree(file)

    def _fresh(self, name: str) -> Path:
        attempt = 1
        while True:
            folder = self._folder / f"{name}.{attempt}"
            try:
                folder.mkdir()
            except FileExistsError:
                attempt += 1
                continue
            return folder
