"""Shows what faster storage, memory, cores, engine or settings would do for a database."""
