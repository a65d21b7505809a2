"""A run from its first round, or from the last one that was committed, to its end.

Heavy imports happen when a run starts, so that wrong settings are refused at once.
"""

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from spo_jax.config import Settings
from spo_jax.constants import SPO, VLLM
from spo_jax.envs.files.reading import remarks_on_files
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.limits import needed, require_address_space
from spo_jax.runs.budget import USED, Budget
from spo_jax.runs.database.store import Store
from spo_jax.runs.discovery.first_round import require_valid
from spo_jax.runs.discovery.objects import Both
from spo_jax.runs.display import lines, progress
from spo_jax.runs.display.funnel import Copies
from spo_jax.runs.folders import BEST, CHECKPOINTS, DATABASE, INSTANCES, LOCK, LOG, MANIFEST
from spo_jax.runs.gaps import GapTracker
from spo_jax.runs.manifest import (
    check_game,
    check_instances,
    check_model,
    check_prompts,
    check_start_pairs,
    idle_devices,
    inexact_resume,
    instances_of,
    manifest,
    model_of,
    other_software,
)
from spo_jax.runs.probes import rewind_probes
from spo_jax.runs.references import References
from spo_jax.runs.report import NAME
from spo_jax.runs.report.write import keep_page
from spo_jax.runs.run import Run, load_run
from spo_jax.runs.tracking import Factory
from spo_jax.runs.tracking.sending import Marks, Tracking
from spo_jax.search.parts import Method, Parts
from spo_jax.search.rounds import Observer, Round, Updater
from spo_jax.stopping import take_time


@dataclasses.dataclass
class Discovery:
    """A run that is about to start or resume: its settings, its folder, and the passed objects.

    begun: whether it has its start pairs already, in the record of round 1. objects: names of the
    passed objects, by option. track: trackers by name. committed: rounds so far. instances: to
    train on, where they were passed. more: whether it was finished and gets more rounds. opened:
    when this session began, by `time.monotonic`. exists: whether the folder is there. finished:
    nothing is left to do.
    """

    config: Settings
    preset: str
    path: Path
    new: bool
    rewind: int | None = None
    finished: bool = False
    begun: bool = False
    objects: Mapping[str, str] = dataclasses.field(default_factory=dict)
    observer: Observer | None = None
    verbose: bool = False
    report: bool = False
    track: Mapping[str, Factory] = dataclasses.field(default_factory=dict)
    instances: Sequence[Instance] = ()
    more: bool = False
    committed: int = 0
    opened: float = dataclasses.field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.exists = not self.new

    def farewell(self) -> str:
        """The message of a stopped run."""
        if self.exists:
            return lines.stopped(self.config, self.path, self.committed)
        return "Stopped before the run began; nothing was written."

    def run(self) -> Run:
        """From the last committed round to the end."""
        if self.finished:
            with Store.reopen(self.path) as store:  # a kill may have come before the last export
                unwritten = store.export_best(store.best())
            run = load_run(self.path)
            self._print(f"{self.path} is finished: {run.progress} rounds.")
            with Tracking(self.track, self.path, self._print) as tracking:
                tracking.over(run)
        else:
            try:
                self._discover()
            except InputError:
                self._forget()
                raise
            unwritten = self.unwritten
            run = load_run(self.path)
        where = unwritten or self.path / BEST
        gap = lines.gap_in_words(run)
        for line in lines.closing(
            run.best, self.config, self.path, where, run.finals, gap, run.validated_gap, run.names,
            importable="problem" not in self.objects, failed=bool(run.failures),
            maximise=run.maximise,
        ):  # fmt: skip
            self._print(line)
        if self.report:
            keep_page(run, self._print)
        if run.best is None and run.failures:
            self._print(lines.commonest(run.failures, run.game))
        return run

    def _forget(self) -> None:
        """Remove the folder of a new run that was refused in its first round; keep what was paid
        for or says more, as requests of an endpoint and a server's log.
        """
        ours = {
            MANIFEST,
            DATABASE,
            INSTANCES,
            LOG,
            LOCK,
        }  # references are written after the first round
        begun = self.new and self.exists and not self.committed
        if begun and {each.name for each in self.path.iterdir()} <= ours:
            shutil.rmtree(self.path)

    def _print(self, line: str) -> None:
        if self.verbose:
            print(line)

    def _discover(self) -> None:
        from spo_jax.cache import cache_folder
        from spo_jax.envs.problems import get_problem
        from spo_jax.envs.run.evaluator import Spread
        from spo_jax.rl.backend import ask_same_bits, keep_compiled, share_devices
        from spo_jax.runs.discovery.starting import start_pairs
        from spo_jax.search.credit import CREDITS
        from spo_jax.search.credit.parent_reward import learning_credit_of
        from spo_jax.search.instances import training_instances, validation_instances
        from spo_jax.search.method import method_of, rounds_in, variant_of
        from spo_jax.search.plugins import (
            evaluator_of,
            require_game,
            require_known,
            require_panel,
            writer_and_learner,
        )
        from spo_jax.search.population import PANELS, SURVIVORS
        from spo_jax.search.sampling.start import record, require_runnable
        from spo_jax.search.spo import Spo
        from spo_jax.search.utility import reads_seconds, utility_of
        from spo_jax.search.writing.prompts import Templates

        config = self.config
        require_address_space(needed(program=config.evaluation.memory_mb))
        if config.learning.deterministic:  # before a module of the user's can look at a device
            ask_same_bits()
        problem = get_problem(config.problem)
        game = problem.interface.game
        # Read once: files that change while a run goes on change nothing in it.
        training = list(self.instances) or training_instances(config, problem)
        validation = validation_instances(config, problem) if config.search.finalists else []
        instances = instances_of(training, validation)
        start = [] if self.begun else start_pairs(config, problem)
        require_known(config)
        require_panel(config, problem)
        require_game(config, problem)
        templates = Templates.of(config.generator, problem, training)  # once for the whole run
        prompts = templates.digest if config.generator.prompts is not None else None
        credit, learning_credit = CREDITS[config.search.credit], learning_credit_of(config)
        survivors, panel = SURVIVORS[config.search.survivors], PANELS[config.search.panel]
        utility = utility_of(config.evaluation.utility, problem)
        method = Spo(tuple(start)) if start else method_of(config)
        if config.generator.name == VLLM:
            share_devices(in_turns=config.vllm.residency != "both")
        uncached = keep_compiled(cache_folder() / "compiled")
        model = model_of(config)
        generator, updater = writer_and_learner(config)
        peer = config.search.method != SPO
        variant = variant_of(method, config, generator) if peer else None
        with (
            _closed(generator),
            evaluator_of(config, problem) as evaluator,
        ):
            require_runnable(start, evaluator, config.generator.state, game)
            if self.new:
                what = manifest(
                    config.replace(on=(INSTANCES,)) if self.instances else config,
                    self.preset,
                    evaluator.layers,
                    model=model,
                    variant=variant,
                    rounds=rounds_in(method, config) if peer else None,
                    prompts=prompts,
                    maximise=problem.maximise or None,
                    game=game.to_json(),
                    **instances,
                    objects=dict(self.objects) or None,
                    start_pairs=record(start) or None,
                )
                store = Store.create(self.path, what, self.instances)
                self.exists = True
            else:
                store = Store.reopen(self.path)
            console = Console(highlight=False, soft_wrap=True, quiet=not self.verbose)
            digests = [each.digest for each in training]
            references = References(self.path, problem, [*training, *validation])
            gaps = GapTracker(digests, references.found, store.paid, problem.maximise)
            spread = evaluator if isinstance(evaluator, Spread) else None
            shares = (lambda: "") if spread is None else spread.shares
            copies = Copies(store.sources, game) if generator.writes_prose else None
            with (
                store,
                references,
                progress.Display(
                    config, store.log, console, store.name, gaps, shares, copies
                ) as display,
                Tracking(self.track, self.path, display.remark) as tracking,
            ):
                check_model(store.manifest.get("model"), model, self.path)
                check_prompts(store.manifest, prompts, self.path)
                check_game(store.manifest, game, self.path)
                check_instances(store.manifest, instances, self.path)
                if not self.begun:
                    check_start_pairs(store.manifest, start, self.path)
                self._open(store, display, generator, updater)
                if spread is not None:
                    spread.listen(display.say)
                for remark in (*remarks_on_files(training), *remarks_on_files(validation)):
                    display.say(remark)
                if reads_seconds(utility):
                    display.say(lines.timed(config.evaluation.utility))
                if variant is not None:
                    display.say(f"Method: {variant}")
                other = other_software(store.manifest, model)
                for warning in (uncached, idle_devices(model), inexact_resume(model), other):
                    if warning:
                        display.say(warning)
                parts = Parts(
                    config=config,
                    problem=problem,
                    evaluator=evaluator,
                    generator=generator,
                    credit=credit,
                    learning_credit=learning_credit,
                    utility=utility,
                    updater=updater,
                    survivors=survivors,
                    panel=panel,
                    observer=Both(display, tracking, *([self.observer] if self.observer else [])),
                    templates=templates,
                )
                self._rounds(parts, store, display, method, training, validation)
                tracking.over(load_run(self.path))

    def _open(
        self, store: Store, display: progress.Display, generator: Generator, updater: Updater
    ) -> None:
        """Restore the state after the last committed round, or after the one to go back to."""
        self.committed = store.last_round(self.rewind)
        if self.committed:
            updater.restore(self.path / CHECKPOINTS, self.committed)
        if self.rewind is not None:  # after the restore has succeeded
            store.rewind(self.rewind)
            (self.path / NAME).unlink(missing_ok=True)  # it has rounds that are no more
            Marks(self.path).rewind(self.rewind)
            rewind_probes(self.path, self.rewind)
            display.note(f"went back to round {self.rewind}")
        if self.more:
            store.planned(self.config.search.rounds)
        generator.on_answer, generator.on_tokens = display.answered, display.heard
        generator.open(self.path, display.remark)
        display.say(lines.opening(self.config, self.preset, self.path, self.committed + 1))
        if greeting := generator.greeting():
            display.say(greeting)
        if unwritten := store.export_best(store.state().best):
            display.say(unwritten)

    def _rounds(
        self,
        parts: Parts,
        store: Store,
        display: progress.Display,
        method: Method,
        training: Sequence[Instance],
        validation: Sequence[Instance],
    ) -> None:
        """The rounds of the method, and the validation; each round is committed."""
        from spo_jax.envs.run.evaluator import Spread
        from spo_jax.runs.discovery.loop import discover
        from spo_jax.search.instances import other_sizes
        from spo_jax.search.validation import controls_wanted, validate, work_of

        config, budget = self.config, None
        if config.search.minutes is not None:
            work = work_of(config, parts.problem, training, validation)
            budget = Budget(60 * config.search.minutes, work, store.spent, self.opened)
            display.budget = budget
            store.planned(None)
            display.say(lines.budget(config.search.minutes))
        advantages: Any = getattr(parts.updater, "advantages", lambda groups: {})

        def record() -> None:
            if isinstance(parts.evaluator, Spread):
                store.ran_on(parts.evaluator.record())

        def commit(done: Round) -> None:
            parts.updater.save(self.path / CHECKPOINTS, done.number)
            moved = advantages(done.groups) if done.groups else {}
            seconds = display.seconds()
            if budget is not None:
                seconds[USED] = budget.used
            store.commit(done, display.remark, advantages=moved, seconds=seconds)
            record()
            self.committed = done.number
            store.export_best(done.best)
            if self.report:
                keep_page(self.path, display.remark)
            if parts.generator.writes_prose:
                require_valid(done, config, self.path)

        record()
        over = None if budget is None else budget.over
        discover(parts, store.state(), commit, method, training, over)
        display.ended()
        if budget is not None:
            store.planned(self.committed)
            display.say(lines.budgeted(self.committed, budget.used, budget.held))
        if config.search.finalists:
            best = store.candidates(config.search.finalists)
            others = store.controls(controls_wanted(config), best)
            measured = validate(
                config, parts.problem, parts.evaluator, best, others, parts.observer, parts.utility,
                validation, other_sizes(config, parts.problem, training),
            )  # fmt: skip
            store.commit_finals(measured, display.remark, display.seconds())
            record()
        self.unwritten = store.export_best(store.best())
        totals = store.totals()
        if line := lines.bill(totals):
            display.say(line)


@contextlib.contextmanager
def _closed(generator: Generator) -> Iterator[None]:
    """Closes a generator at the end."""
    try:
        yield
    finally:
        take_time()  # a server of ours ends, and gives the card back
        generator.close()
