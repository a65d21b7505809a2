"""One GRPO update of an adapter: tokens a second, model FLOPs utilisation, and PyTorch beside it.

    python experiments/bench/grpo_step.py                      # a small shape, on any machine
    python experiments/bench/grpo_step.py --size 9B --prompt 6144 --completion 2048 --samples 3

Weights are random; every sample has the same length, so nobody pays for padding. The PyTorch step
is transformers with PEFT and gradient checkpointing, the same micro-batches and the same loss.
Utilisation is of the rate of a large matrix product measured in the same run, and counts neither
rematerialisation nor, with shared prompts, the work that sharing saves.
"""

import argparse
import resource
import time
from typing import Any

import jax
import numpy as np
import shapes

from spo_jax.errors import MissingExtra
from spo_jax.rl.lora import TARGET_SETS, LoraConfig
from spo_jax.rl.qwen import QwenConfig
from spo_jax.rl.updates.batches import TokenGroup
from spo_jax.rl.updates.grpo import GrpoConfig
from spo_jax.rl.updates.trainer import Trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="small", help="tiny, small, 0.8B, 4B, 9B or 27B")
    parser.add_argument("--targets", default="mixers", choices=sorted(TARGET_SETS))
    parser.add_argument("--prompt", type=int, default=384, help="tokens of a prompt")
    parser.add_argument("--completion", type=int, default=128, help="tokens of a completion")
    parser.add_argument("--samples", type=int, default=6, help="samples of the group")
    parser.add_argument("--micro-batch", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="timed updates; the best counts")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    run(parser.parse_args())


def run(options: argparse.Namespace) -> None:
    config = shapes.config_of(options.size)
    lora = LoraConfig(targets=TARGET_SETS[options.targets])
    dtype = shapes.compute_dtype()
    tokens = options.samples * (options.prompt + options.completion)
    work = options.samples * shapes.step_flops(config, lora, options.prompt, options.completion)
    peak = shapes.peak_flops(dtype)
    print(f"{options.size} in {dtype.name} on {shapes.device_name()}: {options.samples} samples of")
    print(f"  {options.prompt} + {options.completion} tokens, micro-batch {options.micro_batch}")
    print(f"  matrix product {peak / 1e12:.2f} TFLOP/s, {work / tokens / 1e9:.3f} GFLOP a token")
    print(f"  {'':15s} {'tokens/s':>9s} {'utilised':>9s} {'peak GB':>8s} {'warm-up s':>9s}")
    found = {}
    model = shapes.random_model(config, dtype)
    for name, share in (("plain", False), ("shared prompts", True)):
        settings = GrpoConfig(micro_batch=options.micro_batch, share_prompts=share)
        best, first = time_jax(Trainer(model, lora, settings, options.prompt + 10**6), options)
        found[name] = tokens / best
        report(name, tokens / best, work / best / peak, peak_gigabytes(), first)
    if not options.no_torch:
        del model
        best, first, memory = time_torch(config, lora, options)
        found["PyTorch"] = tokens / best
        report("PyTorch", tokens / best, work / best / peak, memory, first)
    print()
    print(f"  shared prompts over plain: {found['shared prompts'] / found['plain']:.2f}")
    if "PyTorch" in found:
        print(f"  plain over PyTorch: {found['plain'] / found['PyTorch']:.2f}")


def report(name: str, rate: float, utilised: float, memory: float, first: float) -> None:
    print(f"  {name:15s} {rate:9.0f} {utilised:9.1%} {memory:8.2f} {first:9.1f}", flush=True)


def make_group(config: QwenConfig, options: argparse.Namespace) -> TokenGroup:
    rng = np.random.default_rng(0)
    n, length = options.samples, options.completion
    return TokenGroup(
        name="bench",
        prompt=rng.integers(0, config.vocab_size, options.prompt, dtype=np.int32),
        completions=list(rng.integers(0, config.vocab_size, (n, length), dtype=np.int32)),
        logprobs=list(np.full((n, length), -np.log(config.vocab_size), np.float32)),
        credits=rng.normal(size=n),
    )


def time_jax(trainer: Trainer, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds of an update at best, and of the first one, which compiles."""
    group = make_group(trainer.model_config, options)
    learner = trainer.init(jax.random.key(0))
    times = []
    for _ in range(options.repeats + 1):
        began = time.perf_counter()
        learner, _ = trainer.update(learner, [group])
        times.append(time.perf_counter() - began)
    return min(times[1:]), times[0]


def peak_gigabytes() -> float:
    """The most that was allocated on the device so far; of the whole process on a CPU."""
    stats = jax.devices()[0].memory_stats()
    if stats:
        return stats["peak_bytes_in_use"] / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def time_torch(
    config: QwenConfig, lora: LoraConfig, options: argparse.Namespace
) -> tuple[float, float, float]:
    """The same update in transformers and PEFT: seconds at best, of the first, and the peak."""
    try:
        import peft
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra(error.name or "torch", "test") from None
    cuda = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    text = transformers.Qwen3_5TextConfig(**config.to_json())
    with torch.device(device):
        torch.set_default_dtype(dtype)
        base = transformers.Qwen3_5ForCausalLM(text)
        torch.set_default_dtype(torch.float32)
    model: Any = peft.get_peft_model(
        base,
        peft.LoraConfig(r=lora.rank, lora_alpha=int(lora.alpha), target_modules=list(lora.targets)),
    )
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.enable_input_require_grads()
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    adamw = torch.optim.AdamW(trained, lr=5e-6)
    group = make_group(config, options)
    n, length = options.samples, options.completion
    prompt = np.tile(group.prompt, (n, 1))
    rows = torch.tensor(np.concatenate([prompt, np.stack(group.completions)], 1)).long().to(device)
    old = torch.tensor(np.stack(group.logprobs)).to(device)
    advantage = torch.tensor(group.credits - group.credits.mean()).float().to(device)

    def update() -> None:
        adamw.zero_grad()
        for start in range(0, n, options.micro_batch):
            part = slice(start, start + options.micro_batch)
            out = model(input_ids=rows[part], logits_to_keep=length + 1, use_cache=False)
            logits = out.logits[:, :-1].float() / 0.8
            targets = rows[part, -length:, None]
            chosen = logits.gather(2, targets)[..., 0] - torch.logsumexp(logits, -1)
            rho = torch.exp((chosen - old[part]).sum(1))
            A = advantage[part]
            loss = -torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A).sum() / n
            loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        adamw.step()
        if cuda:
            torch.cuda.synchronize()

    times = []
    for _ in range(options.repeats + 1):
        began = time.perf_counter()
        update()
        times.append(time.perf_counter() - began)
    memory = torch.cuda.max_memory_allocated() / 1e9 if cuda else peak_gigabytes()
    return min(times[1:]), times[0], memory


if __name__ == "__main__":
    main()
