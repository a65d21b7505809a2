"""What a person is told: evaluations, baselines, references, solutions, pictures, the machine."""
