"""A real discovery with a real model that kills itself: `killed_run.py MOMENT ARGUMENT...`.

The arguments are those of the command line. MOMENT is "ROUND:WHERE", or "never"; WHERE is one of
the names below. SIGKILL leaves no time to tidy up, as a power cut or the kernel's out-of-memory
killer would. END_BY in the environment names another signal, and CHILDREN a file that gets the
process ids of the children of that moment.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from spo_jax.cli import main
from spo_jax.rl import checkpoint, policy
from spo_jax.rl.updates import learning
from spo_jax.runs.database import store
from spo_jax.runs.display import progress


class Killer:
    def __init__(self, moment: str):
        self.moment = moment
        self.round, self.stage, self.updates = 0, "", 0

    def now(self, where: str) -> None:
        if f"{self.round}:{where}" == self.moment:
            if "CHILDREN" in os.environ:
                own = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
                Path(os.environ["CHILDREN"]).write_text(own)
            os.kill(os.getpid(), getattr(signal, os.environ.get("END_BY", "SIGKILL")))

    def arm(self) -> None:
        """Put a `now` into the places that the moments name."""
        Display: Any = progress.Display
        stage, advance, sample = Display.stage, Display.advance, policy.stream
        checksums = checkpoint._write_checksums
        kinds: Any = (learning.GrpoLearning, learning.EvoTuneLearning)
        commit = store.Store.commit

        def watch_stage(display: Any, number: int, name: str, total: int) -> None:
            self.round, self.stage, self.updates = number, name, 0
            stage(display, number, name, total)

        def watch_advance(display: Any, done: int) -> None:
            advance(display, done)
            if self.stage == "repair" and done:
                self.now("evaluation")

        def watch_sample(*args: Any) -> Any:
            for part in sample(*args):
                if self.stage == "repair":
                    self.now("sampling")
                yield part

        def watched(update: Any) -> Any:
            def watch_update(*args: Any) -> Any:
                result = update(*args)
                self.now("update")  # one adapter has learned, the other not
                return result

            return watch_update

        def watch_checksums(folder: Any) -> None:
            self.now("checkpoint")  # the arrays are there, what makes them count is not
            checksums(folder)

        def watch_commit(*args: Any, **more: Any) -> None:
            self.now("commit")  # the checkpoint is there, the round is not
            commit(*args, **more)

        Display.stage, Display.advance, policy.stream = watch_stage, watch_advance, watch_sample
        for kind in kinds:
            kind.update = watched(kind.update)
        checkpoint._write_checksums = watch_checksums
        store.Store.commit = watch_commit  # type: ignore[method-assign]


if __name__ == "__main__":
    Killer(sys.argv[1]).arm()
    sys.exit(main(sys.argv[2:]))
