"""What settings must be to one another."""

from typing import TYPE_CHECKING

from spo_jax import jsontext
from spo_jax.errors import InputError
from spo_jax.words import EMBEDDED, ENDPOINT, LEARNERS, SPO, VLLM

if TYPE_CHECKING:
    from spo_jax.config import Config

# What a request says by other settings, or has to be as it is.
OWN_FIELDS = frozenset(
    ("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed")
) | {"n", "stream"}


def check_relations(config: "Config") -> None:
    """Raises InputError unless the settings go together."""
    if config.group_forms < 1:
        raise InputError(
            "mutation_groups and crossover_groups are both 0; a round needs at least one group"
        )
    if config.repairs_per_destroy % config.responses:
        raise InputError(
            f"repairs_per_destroy is {config.repairs_per_destroy}; it must be a multiple of "
            f"responses ({config.responses}), because repairs come in whole groups"
        )
    if config.select == "validation" and not config.finalists:
        raise InputError("finalists is 0; select = validation needs at least 1 to choose from")
    if config.panel_evolved == 0 and not config.panel_classical:
        raise InputError(
            "panel_evolved is 0; without panel_classical it must be at least 1, "
            "or repairs could not be compared"
        )
    if config.update == "grpo" and config.generator not in LEARNERS:
        raise InputError(
            f"update is grpo, which teaches a model, and generator is {config.generator}; "
            "leave out one of them"
        )
    if config.learning_credit is not None and config.update == "none":
        raise InputError(
            f"learning_credit is {config.learning_credit}, and update is none, which learns "
            "nothing; leave out one of them, or say credit for what selects programs"
        )
    if config.method != SPO and ":" not in config.method and config.update != "none":
        raise InputError(
            f"update is {config.update}, and method is {config.method}, which teaches no model; "
            "leave out one of them"
        )
    if config.method == SPO and config.method_settings is not None:
        raise InputError(
            "method_settings is given, but method is spo, whose numbers have options of their own; "
            "leave it out, or name another method"
        )
    if config.generator == ENDPOINT and (config.base_url is None or config.model == EMBEDDED):
        raise InputError(
            f"generator is {ENDPOINT}, which asks an endpoint for a model of its own; "
            "give both --base-url URL and --model NAME"
        )
    if config.generator != ENDPOINT and config.base_url is not None:
        raise InputError(
            f"base_url is given, but generator is {config.generator}, which asks no endpoint; "
            f"use generator {ENDPOINT}, or leave out base_url"
        )
    if config.request_extra is not None:
        if config.generator != ENDPOINT:
            raise InputError(
                f"request_extra is given, but generator is {config.generator}, which asks no "
                f"endpoint; use generator {ENDPOINT}, or leave out request_extra"
            )
        _check_extra(config.request_extra)
    if config.generator == VLLM and (config.vllm_python is None) == (config.vllm_url is None):
        raise InputError(
            f"generator is {VLLM}, which needs a server: give either --vllm-python PATH of an "
            "environment that has vLLM, or --vllm-url URL of one that runs"
        )
    if config.vllm_url is not None and config.residency == "restart":
        raise InputError(
            "residency is restart, but a server at vllm_url is not ours to start; use sleep or both"
        )
    if config.vllm_url is not None and config.vllm_devices is not None:
        raise InputError(
            "vllm_devices is given, but a server at vllm_url is not ours to start; leave out one"
        )
    if config.generator != VLLM:
        for name in ("vllm_python", "vllm_url", "vllm_args", "vllm_devices", "importance_cap"):
            if getattr(config, name) is not None:
                raise InputError(
                    f"{name} is given, but generator is {config.generator}; use generator {VLLM}, "
                    f"or leave out {name}"
                )
    if config.max_new_tokens >= config.context:
        raise InputError(
            f"max_new_tokens is {config.max_new_tokens} and context {config.context}; "
            "the difference is what a prompt may take"
        )


def _check_extra(text: str) -> None:
    """Raises InputError unless `text` is a JSON object of fields that are free."""
    try:
        fields = jsontext.parse(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InputError(
            f"request_extra is {text!r}; it must be a JSON object, as "
            """'{"reasoning_effort": "low"}'"""
        )
    if taken := sorted(OWN_FIELDS & fields.keys()):
        raise InputError(
            f"request_extra holds {', '.join(taken)}, which a request says by itself; leave it out"
        )
