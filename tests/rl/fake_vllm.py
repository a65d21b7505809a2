"""A process that speaks vLLM's HTTP interface, run as `python fake_vllm.py ARGUMENTS...`.

An answer depends on its prompt and place alone, so one that is asked for again is the same.
Its model is computed in NumPy, and is right for a folder whose mixers add nothing (o_proj is zero)
and adapters on the MLP alone: then a token's distribution follows from the token before it. With
--misbehave FILE it reads what to do wrong from a JSON file, before every request:

crash, hang, slow: what to do with a completion; with `once` the file is deleted before it is done.
pid: the process that it is for, else all.
wrong: nats that are added to log-probabilities. other_text, no_stop, short: an answer that is none.
abort: an answer that was broken off. processed: give log-probabilities after the temperature, as
--logprobs-mode processed_logprobs does, which it has with top-p 1 alone.
stale: serve a role's adapter of before for the one that is loaded; "cached": only where it would
have the beginning of a prompt from before. base: serve the base for it. other: serve a role's
adapter for the other's.
status: answer completions with this. insomnia: do not go to sleep. no_lora: know no adapters.
blind: see no folder of an adapter. cache: [blocks, tokens of one], what the metrics say.

It asks for the key in VLLM_API_KEY, where there is one, as vLLM does.
"""

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
vllm:num_requests_running{engine="0",model_name="base"} 0.0
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="%d",cache_dtype="auto",num_gpu_blocks="%d"} 1.0
"""


class Model:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        weights = load_file(folder / "model.safetensors")
        self.weights = {k.replace("model.language_model.", "model."): v for k, v in weights.items()}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.adapters = {}

    def load(self, name, path):
        values = json.loads((path / "adapter_config.json").read_text())
        tensors = load_file(path / "adapter_model.safetensors")
        scale = values["lora_alpha"] / values["r"]
        prefix = "base_model.model.model.language_model."
        self.adapters[name] = scale, {k.removeprefix(prefix): v for k, v in tensors.items()}

    def logprobs(self, tokens, adapter, instead=None):
        """[T, V] at temperature 1 after each of the tokens, with an adapter or what is instead."""
        w, (scale, low) = self.weights, instead or self.adapters.get(adapter, (0.0, {}))

        def linear(x, name):
            out = x @ w[f"model.{name}.weight"].T
            if f"{name}.lora_A.weight" in low:
                out += scale * (x @ low[f"{name}.lora_A.weight"].T) @ low[f"{name}.lora_B.weight"].T
            return out

        def norm(x, name):
            size = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)
            return x / size * (1 + w[f"model.{name}.weight"])

        x = w["model.embed_tokens.weight"][tokens]
        for i in range(self.config["num_hidden_layers"]):
            h = norm(x, f"layers.{i}.post_attention_layernorm")
            gate = linear(h, f"layers.{i}.mlp.gate_proj")
            up = linear(h, f"layers.{i}.mlp.up_proj")
            x = x + linear(gate / (1 + np.exp(-gate)) * up, f"layers.{i}.mlp.down_proj")
        return log_softmax(norm(x, "norm") @ w["lm_head.weight"].T)


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def draw(row, temperature, top_p, rng):
    if temperature == 0:
        return int(row.argmax())
    p = np.exp(log_softmax(row / temperature))
    order = np.argsort(-p)
    kept = order[: int(np.searchsorted(np.cumsum(p[order]), top_p)) + 1]
    return int(rng.choice(kept, p=p[kept] / p[kept].sum()))


class Fake:
    def __init__(self, args):
        self.args, self.model = args, Model(Path(args.model))
        self.base, self.asleep, self.before = args.served_model_name, False, {}
        self.cached = {}  # by an adapter's name, what its cache was computed with

    def faults(self):
        """How to misbehave now."""
        path = self.args.misbehave
        try:
            faults = json.loads(Path(path).read_text()) if path else {}
        except FileNotFoundError:
            return {}
        return faults if faults.get("pid", os.getpid()) == os.getpid() else {}

    def answer(self, method, path, body):
        """(status, JSON)."""
        faults = self.faults()
        path = path.partition("?")[0]
        if path == "/health":
            return (503, {}) if faults.get("ill") else (200, {})
        if path == "/v1/models":
            names = [self.base, *self.model.adapters]
            return 200, {"data": [{"id": name} for name in names]}
        if path == "/is_sleeping":
            return 200, {"is_sleeping": self.asleep}
        if path == "/version":
            return 200, {"version": faults.get("version", "0.32.1")}
        if path == "/metrics":
            cache = faults.get("cache")
            return (
                (404, {"detail": "Not Found"})
                if cache is None
                else (200, METRICS % tuple(cache[::-1]))
            )
        note(self.args, {"path": path, **{k: body[k] for k in ("lora_name", "model") if k in body}})
        if path in ("/sleep", "/wake_up"):
            self.asleep = path == "/sleep" and not faults.get("insomnia")
            return 200, {}
        if path == "/reset_prefix_cache":
            return 200, {}
        if path.endswith("_lora_adapter"):
            return self.adapter(path, body, faults)
        if path != "/v1/completions":
            return 404, {"detail": "Not Found"}
        while self.asleep:
            time.sleep(0.02)
        if faults and body["n"] >= faults.get("from_n", 2):
            wrong = self.misbehave(faults)
            if wrong is not None:
                return wrong
        return self.complete(body, faults)

    def adapter(self, path, body, faults):
        if faults.get("no_lora"):
            return 404, {"detail": "Not Found"}
        name, adapters = body["lora_name"], self.model.adapters
        if path == "/v1/unload_lora_adapter":
            found = adapters.pop(name, None)
            return (200, {}) if found else (404, {"error": {"message": f"{name} cannot be found"}})
        if faults.get("blind"):
            return 404, {"error": {"message": f"No adapter found for {body['lora_path']}"}}
        if name in adapters:
            return 400, {"error": {"message": f"{name} has already been loaded"}}
        if len(adapters) == self.args.max_loras - 1:
            return 400, {"error": {"message": "no slot is left"}}
        self.model.load(name, Path(body["lora_path"]))
        role = name.partition("-")[0]
        if faults.get("stale") == "cached":
            self.cached[name] = self.before[role]
        elif faults.get("stale"):
            adapters[name] = self.before[role]
        self.before[role] = adapters[name]
        if faults.get("other") and role == "repair":
            adapters[name] = self.before["destroy"]
        if faults.get("base"):
            adapters[name] = (0.0, {})
        return 200, {}

    def misbehave(self, faults):
        if faults.get("once"):
            Path(self.args.misbehave).unlink(missing_ok=True)
        time.sleep(faults.get("slow", 0.0))
        if faults.get("crash"):
            print("CUDA error: the card is on fire", flush=True)
            os._exit(3)
        if faults.get("hang"):
            time.sleep(60)
        if "status" in faults:
            return faults["status"], {"error": {"message": "I would rather not"}}
        return None

    def complete(self, body, faults):
        model, tokens = body["model"], body["prompt"]
        if model != self.base and model not in self.model.adapters:
            return 404, {"error": {"message": f"The model `{model}` does not exist."}}
        if len(tokens) + body["max_tokens"] > self.args.max_model_len:
            return 400, {"error": {"message": "too long"}}
        if body["temperature"] > 2:
            return 400, {"error": {"message": "temperature must be in [0, 2]"}}
        afresh = "prompt_logprobs" in body
        instead = None if afresh else self.cached.get(model)
        table = self.model.logprobs(np.array(tokens), model, instead) + faults.get("wrong", 0.0)
        temperature = self.processed(body, faults)
        choices = [self.choice(i, body, faults, tokens[-1]) for i in range(body["n"])]
        if body["logprobs"] > 1:
            best = np.argsort(-table[-1])[: body["logprobs"]]
            row = log_softmax(table[-1] / temperature) if temperature != 1 else table[-1]
            named = {f"token_id:{t}": float(row[t]) for t in best}
            choices[0]["logprobs"]["top_logprobs"] = [named]
        if afresh:
            rows = [
                {str(t): {"logprob": float(row[t]), "rank": 1, "decoded_token": ""}}
                for t, row in zip(tokens[1:], table[:-1], strict=True)
            ]
            choices[0]["prompt_logprobs"] = [None, *rows]
        choices[0]["prompt_token_ids"] = tokens
        return 200, {"choices": choices}

    def processed(self, body, faults):
        """The temperature of log-probabilities."""
        given = self.args.logprobs_mode == "processed_logprobs" or faults.get("processed")
        return body["temperature"] if given and body["temperature"] else 1.0

    def choice(self, index, body, faults, last):
        temperature = self.processed(body, faults)
        rng = np.random.default_rng((index, *body["prompt"]))
        tokens, logprobs, finish = [], [], "length"
        for _ in range(body["max_tokens"]):
            row = self.model.logprobs(np.array([last]), body["model"])[0]
            last = draw(row, body["temperature"], body["top_p"], rng)
            tokens.append(last)
            seen = log_softmax(row / temperature) if temperature != 1 else row
            logprobs.append(float(seen[last]) + faults.get("wrong", 0.0))
            if last in body.get("stop_token_ids", ()):
                finish = "stop"
                break
        text = self.model.tokenizer.decode(tokens, skip_special_tokens=True)
        if faults.get("no_stop") and finish == "stop" and len(tokens) > 1:
            tokens, logprobs = tokens[:-1], logprobs[:-1]
        return {
            "index": index,
            "text": "something else" if faults.get("other_text") else text,
            "token_ids": tokens,
            "logprobs": {"token_logprobs": logprobs[:-1] if faults.get("short") else logprobs},
            "finish_reason": "abort" if faults.get("abort") else finish,
        }


def note(args, line):
    if args.diary:
        with open(args.diary, "a") as file:
            file.write(json.dumps({"pid": os.getpid(), **line}) + "\n")


def main():
    parser = argparse.ArgumentParser()
    for name in ("model", "served-model-name", "host", "dtype", "max-lora-rank", "max-cpu-loras"):
        parser.add_argument(f"--{name}")
    for name in ("port", "max-model-len", "max-loras", "seed"):
        parser.add_argument(f"--{name}", type=int, default=8)
    parser.add_argument("--generation-config")
    parser.add_argument("--logprobs-mode")
    parser.add_argument("--kv-cache-memory-bytes", type=int)
    flags = ("enable-lora", "enable-sleep-mode")
    for name in (*flags, "no-enable-prefix-caching", "no-enable-chunked-prefill"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--misbehave")
    parser.add_argument("--diary")
    parser.add_argument("--fail", help="end at once, with these last words")
    args = parser.parse_args()
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    note(args, {"path": "start", "devices": devices, "seed": args.seed})
    if args.fail:
        sys.exit(args.fail)
    assert args.enable_lora
    assert os.environ["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    fake = Fake(args)
    longest = fake.model.config["max_position_embeddings"]
    if args.max_model_len > longest:
        sys.exit(f"ValueError: max_model_len {args.max_model_len} is greater than {longest}")
    if os.fork() == 0:  # vLLM computes in another process, which must not be left behind either
        time.sleep(60)
        os._exit(0)

    class Handler(BaseHTTPRequestHandler):
        def respond(self):
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            key = os.environ.get("VLLM_API_KEY")
            if (
                key
                and self.path.startswith("/v1")
                and self.headers["authorization"] != f"Bearer {key}"
            ):
                status, found = 401, {"error": f"Unauthorized, {self.headers['authorization']}"}
            else:
                status, found = fake.answer(self.command, self.path, body)
            data = (found if isinstance(found, str) else json.dumps(found)).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = respond

        def log_message(self, *args):
            pass

    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 64  # a real server has more than its default of 5
    ThreadingHTTPServer((args.host, args.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
