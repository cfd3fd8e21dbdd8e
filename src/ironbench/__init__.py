"""Tells a database owner what faster storage, memory, cores, engine or settings would do."""
