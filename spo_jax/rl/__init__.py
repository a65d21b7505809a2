"""The learning half: the language model, its adapters, sampling, the GRPO update, checkpoints."""
