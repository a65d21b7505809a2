"""What asks for programs, and the grammar that writes some."""
