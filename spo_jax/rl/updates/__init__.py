"""What changes adapters: GRPO, CALM and EvoTune, their batches, and the trainer that runs them."""
