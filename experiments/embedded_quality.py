"""What the small model writes: valid, new, related to its parents? One table.

    python experiments/embedded_quality.py                        # the model that ships
    python experiments/embedded_quality.py --model runs/embedded/model --samples 1000

Prompts are drawn from the corpus' own distribution by another seed. "Runs" is the share whose pair
with a plain partner gives a utility. "Not in the corpus" compares normalised sources with the
`--corpus` first examples of the training seed; "new structure" does so with names and numbers
taken out. A child is compared with its parent and with the parent of another prompt by the share of
its lines that they have. Parents of a kind that it never saw are --foreign FOLDER's *.py files,
with a header `# role:`, `# problem:`, `# expect: ok` each, as in tests/programs/lawful.
"""

import argparse
import io
import re
import tokenize
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

import corpus
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import Rejection
from spo_jax.program import Pair, Program, Prompt, Role, parse_response
from spo_jax.program.grammar.base import FORMS
from spo_jax.program.types import normalise
from spo_jax.rl import embedded
from spo_jax.rl.qwen import load_pretrained
from spo_jax.rl.sampling import SamplingConfig, sample
from spo_jax.rl.tokens import Tokenizer
from spo_jax.search.writing.prompts import built_in, templates_of
from spo_jax.seeding import derive, python_rng

Answer = tuple[Prompt, Program | str]  # a program, or why there is none


class Writer:
    def __init__(self, folder: Path, temperature: float, top_p: float) -> None:
        self.tokenizer = Tokenizer.load(folder)
        self.model = load_pretrained(folder, dtype=np.float32)
        self.settings = SamplingConfig(
            temperature=temperature, top_p=top_p, max_new_tokens=400, context=4096,
            stop_tokens=self.tokenizer.stops, max_rows=64,
        )  # fmt: skip

    def write(self, prompts: Sequence[Prompt], n: int, seed: int) -> list[Answer]:
        tokens = [self.tokenizer.prompt(prompt.text) for prompt in prompts]
        drawn = sample(self.model, tokens, n, jax.random.key(seed), self.settings)
        out: list[Answer] = []
        for prompt, group in zip(prompts, drawn, strict=True):
            for one in group:
                try:
                    text = self.tokenizer.decode(one.tokens)
                    out.append((prompt, parse_response(prompt.role, text)))
                except Rejection as error:
                    out.append((prompt, str(error)))
        return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, default=embedded.FOLDER)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--corpus", type=int, default=20_000, help="examples to compare with")
    parser.add_argument("--corpus-seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kit", choices=("lns", "none"), default="lns")
    parser.add_argument("--foreign", type=Path, help="folder of programs typed by hand")
    options = parser.parse_args()
    writer = Writer(options.model, options.temperature, options.top_p)
    each = max(1, options.samples // (4 * len(FORMS) * 2))
    rng, kit = python_rng(options.seed, "quality"), options.kit == "lns"
    prompts = [
        corpus.example(rng, problem, role, form, True, kit).prompt
        for problem in corpus.PROBLEMS
        for role in corpus.ROLES
        for form in FORMS
        for _ in range(2 * each)
    ]
    answers = writer.write(prompts, 1, options.seed)
    reasons = judged(answers)
    print("| share of answers | tsp destroy | tsp repair | cvrp destroy | cvrp repair | all |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    gates = [reason is None for reason in reasons]
    row("pass the gates", answers, gates)
    row("run", answers, runs(answers, reasons))
    for form in FORMS:
        some = [i for i, (prompt, _) in enumerate(answers) if prompt.form == form]
        row(f"pass, {form}", [answers[i] for i in some], [gates[i] for i in some])
    good = [a for a, reason in zip(answers, reasons, strict=True) if reason is None]
    lengths = [len(writer.tokenizer.encode(p.source)) for _, p in good]  # type: ignore[union-attr]
    print(f"\ntokens of a program: median {np.median(lengths):g}\n")
    texts = [normalise(program.source) for _, program in good]  # type: ignore[union-attr]
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    row("distinct", good, [first[text] == i for i, text in enumerate(texts)])
    known, shapes = set(), set()
    for number in range(options.corpus):
        # Read as a destroy, whatever it is: only its text matters.
        text = corpus.draw(options.corpus_seed, number).answer
        source = parse_response("destroy", text.replace("def repair(", "def destroy(")).source
        known.add(normalise(source))
        shapes.add(structure(source))
    row("not in the corpus", good, [text not in known for text in texts])
    row("new structure", good, [structure(p.source) not in shapes for _, p in good])  # type: ignore[union-attr]
    family(good)
    print()
    tally = Counter(re.sub(r"\d+", "N", reason)[:90] for reason in reasons if reason is not None)
    for text, count in tally.most_common(12):
        print(f"{count:4d}  {text}")
    if options.foreign:
        foreign(writer, options)


def judged(answers: Sequence[Answer]) -> list[str | None]:
    """Why an answer is no program; None for those that pass the gate."""
    out: list[str | None] = [found if isinstance(found, str) else None for _, found in answers]
    for problem in corpus.PROBLEMS:
        own = _of(problem, answers, out)
        with LocalEvaluator(get_problem(problem), 2, seed=0) as evaluator:
            verdicts = evaluator.check([answers[i][1] for i in own])  # type: ignore[misc]
        for i, verdict in zip(own, verdicts, strict=True):
            out[i] = None if verdict is None else str(verdict)
    return out


def runs(answers: Sequence[Answer], reasons: Sequence[str | None]) -> list[bool]:
    """Whether 100 steps with a program of the corpus as partner, or with its own destroy, work."""
    out = [False] * len(answers)
    for name in corpus.PROBLEMS:
        problem = get_problem(name)
        partner, repair = (plain(name, role) for role in corpus.ROLES)
        own = _of(name, answers, reasons)
        pairs = [
            Pair(partner, program) if program.role == "repair" else Pair(program, repair)
            for program in (answers[i][1] for i in own)
            if isinstance(program, Program)
        ]
        instances = problem.sample(50, 1, derive(0, "quality"))
        with LocalEvaluator(problem, 2, seed=0) as evaluator:
            rollouts = evaluator.run(pairs, instances, seeds=range(1), steps=100)
        for i, ok in zip(own, rollouts.ok, strict=True):
            out[i] = bool(ok)
    return out


def _of(name: str, answers: Sequence[Answer], reasons: Sequence[str | None]) -> list[int]:
    """The places of a problem's answers that are programs."""
    return [
        i for i, (prompt, _) in enumerate(answers)
        if prompt.problem == name and reasons[i] is None
    ]  # fmt: skip


def plain(problem: str, role: Role) -> Program:
    """Some program of the corpus, always the same."""
    grammar = corpus.get_grammar(problem, role)
    return corpus.program(grammar, grammar.sample(python_rng(0, "partner")))


def row(name: str, answers: Sequence[Answer], values: Sequence[bool]) -> None:
    cells = []
    for problem in corpus.PROBLEMS:
        for role in corpus.ROLES:
            own = [
                value
                for (prompt, _), value in zip(answers, values, strict=True)
                if (prompt.problem, prompt.role) == (problem, role)
            ]
            cells.append(f"{np.mean(own):.1%}" if own else "-")
    print(f"| {name} | {' | '.join(cells)} | {np.mean(values):.1%} |", flush=True)


def structure(source: str) -> str:
    """A source's tokens with names and numbers taken out."""
    out = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NUMBER:
            out.append("0")
        elif token.type == tokenize.NAME and token.string not in _WORDS:
            out.append("x")
        else:
            out.append(token.string.strip())
    return " ".join(out)


_KEPT = """def return for while if else elif in not and or lambda break continue min max sorted len
sum range enumerate zip"""
_WORDS = set(_KEPT.split())


def shared(child: str, parent: str) -> float:
    """The share of the child's lines that the parent has too."""
    lines = [line.strip() for line in child.splitlines() if line.strip()]
    return float(
        np.mean([line in {other.strip() for other in parent.splitlines()} for line in lines])
    )


def family(good: Sequence[Answer]) -> None:
    """Children against their own parents and against those of the next prompt of the same kind."""
    for form in FORMS:
        some = [(p, c) for p, c in good if p.form == form and isinstance(c, Program)]
        if not built_in().form(form).parents[0] or not some:
            continue
        kin: list[Answer] = []
        closer, both = [], []
        for i, (prompt, child) in enumerate(some):
            others = [
                other for other, _ in some[i + 1 :] + some[:i]
                if (other.problem, other.role) == (prompt.problem, prompt.role)
                and other.parents[0].digest != prompt.parents[0].digest
            ]  # fmt: skip
            if not others:
                continue
            own = [shared(child.source, parent.source) for parent in prompt.parents]
            strange = [shared(child.source, parent.source) for parent in others[0].parents]
            kin.append((prompt, child))
            closer.append(max(own) > max(strange))
            both.append(len(own) == 2 and _draws_from_both(child, prompt.parents))
        row(f"closer to its parent, {form}", kin, closer)
        if built_in().form(form).parents[0] == 2:
            row(f"has lines of each parent alone, {form}", kin, both)


def _draws_from_both(child: Program, parents: Sequence[Program]) -> bool:
    lines = [{line.strip() for line in p.source.splitlines()} for p in (child, *parents)]
    return bool(lines[0] & (lines[1] - lines[2])) and bool(lines[0] & (lines[2] - lines[1]))


def foreign(writer: Writer, options: argparse.Namespace) -> None:
    """Mutations of programs that somebody typed."""
    prompts: list[Prompt] = []
    for path in sorted(options.foreign.glob("*.py")):
        text = path.read_text("utf-8", errors="ignore")
        fields = dict(re.findall(r"^# (\w+): (.*)$", text, re.MULTILINE))
        if fields.get("expect") != "ok" or "@" in text or len(text) > 4000:
            continue
        try:
            parent = Program.from_source(fields["role"], text)
        except Rejection:
            continue
        destroy = plain(fields["problem"], "destroy") if parent.role == "repair" else None
        form = FORMS[1 + len(prompts) % 3]
        prompts.append(
            templates_of(fields["problem"], options.kit == "lns").render(
                fields["problem"], parent.role, form, [parent], destroy
            )
        )
    prompts = [p for p in prompts if len(writer.tokenizer.prompt(p.text)) < 3000]
    answers = writer.write(prompts, 2, options.seed)
    print(f"\n{len(prompts)} programs typed by hand as parents, two children each")
    row("pass the gates", answers, [reason is None for reason in judged(answers)])


if __name__ == "__main__":
    main()
