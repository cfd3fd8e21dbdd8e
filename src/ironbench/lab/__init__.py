"""One experiment, from its declared trials to their records: which trial comes next, its data, its measurement."""
